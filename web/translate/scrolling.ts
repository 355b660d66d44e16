// Two boxes that scroll together.

/**
 * Makes two boxes scroll together, so that both are at the same fraction of their own length. The box that the reader
 * used last leads. If the other box scrolls by itself, as when its text becomes shorter, the leader stays. Returns a
 * function that realigns the other box, to be called when a text has changed.
 */
export function scrollTogether(first: HTMLElement, second: HTMLElement) {
  let [leader, follower] = [first, second];
  const room = (box: HTMLElement) => box.scrollHeight - box.clientHeight;
  const follow = () => {
    follower.scrollTop = (leader.scrollTop / Math.max(room(leader), 1)) * room(follower);
  };
  for (const [box, other] of [
    [first, second],
    [second, first],
  ]) {
    for (const type of ["wheel", "pointerdown", "keydown", "focusin"])
      box.addEventListener(type, () => ([leader, follower] = [box, other]), { passive: true });
    box.addEventListener("scroll", () => {
      if (box === leader) follow();
    });
  }
  return follow;
}
