// Lists of changes, by attention. Each function returns a new object.

/**
 * Returns a list without one entry.
 * @template Entry
 * @param {readonly Entry[]} list
 * @param {Entry} entry
 */
export function without(list, entry) {
  return list.filter((one) => one !== entry);
}

/**
 * Returns the lists by name with one list replaced; an empty list is left out.
 * @template Entry
 * @param {Record<string, Entry[]>} lists
 * @param {string} name
 * @param {Entry[]} list
 */
export function withList(lists, name, list) {
  const all = { ...lists, [name]: list };
  if (list.length === 0) delete all[name];
  return all;
}
