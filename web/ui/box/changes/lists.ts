// Edits lists of changes, stored by the name of the attention. Each function returns a new object.

/** Returns a list without one entry. */
export function without<Entry>(list: readonly Entry[], entry: Entry) {
  return list.filter((one) => one !== entry);
}

/** Returns the record with one list replaced; an empty list is removed from the record. */
export function withList<Entry>(lists: Record<string, Entry[]>, name: string, list: Entry[]) {
  const all = { ...lists, [name]: list };
  if (list.length === 0) delete all[name];
  return all;
}
