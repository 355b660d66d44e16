// Two boxes that scroll together.

/**
 * Lets two boxes scroll together, each by the same share of its own length. The box that the reader used last leads;
 * when the other one moves, as it does when its text becomes shorter, nothing follows it. Returns a function that makes
 * the other box follow, for a text that has changed.
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
