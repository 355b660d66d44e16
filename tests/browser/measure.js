// Returns what a reader could not read, reach or press on a page: one sentence for each defect, empty if there is none.
// The function knows roles and positions, and no class name of the page. `wanted` has the limits that differ from state
// to state; its selectors come from the table in test_sweep.py.
async (wanted) => {
  const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const CONTROLS = `${FOCUSABLE}, [role=button], [role=option], [role=slider]`;
  const PRESSED = "a[href], button, input, select, textarea, summary, [role=button], [role=option]";
  const PLANES = "dialog, section[aria-label], [role=dialog], [role=listbox], details[open] > :not(summary), :has(> [role=combobox])";
  const AXE = { resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } }; // measured below
  const UNREAD = "[inert], script, style, title, desc, defs, noscript, option, template, [hidden]";
  /** Returns a function that computes each element's result once. */
  const once = (compute) => {
    const known = new Map();
    return (one) => {
      if (!known.has(one)) known.set(one, compute(one));
      return known.get(one);
    };
  };
  const defects = new Set();
  const report = (one, what) => defects.add(`${nameOf(one)} ${what}`);
  const all = (selector) => [...document.querySelectorAll(selector)].filter(isShown);

  function nameOf(one) {
    const text = one.ariaLabel || one.textContent || one.title || "";
    return `${one.role ?? one.localName} “${text.trim().replace(/\s+/g, " ").slice(0, 50)}”`;
  }

  const isShown = once((one) => {
    if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || one.closest(UNREAD)) return false;
    return !isSpoken(one);
  });

  /** Returns whether only screen readers read an element. */
  const isSpoken = once(
    (one) => getComputedStyle(one).clipPath === "inset(50%)" || (one.parentElement ? isSpoken(one.parentElement) : false),
  );

  // Rectangles

  const isWithin = (one, other) => one.contains(other) || other.contains(one);

  function sharedBy(one, other) {
    const [left, right] = [Math.max(one.left, other.left), Math.min(one.right, other.right)];
    const [top, bottom] = [Math.max(one.top, other.top), Math.min(one.bottom, other.bottom)];
    return { left, right, top, bottom, width: right - left, height: bottom - top };
  }

  /** Returns whether two boxes overlap by more than the empty space above and below the letters of a line. */
  function isOver(one, other, across = 1, down = Math.max(4, 0.15 * Math.min(one.height, other.height))) {
    const { width, height } = sharedBy(one, other);
    return width > across && height > down;
  }

  function unionOf(boxes) {
    const ends = (side, most) => most(...boxes.map((one) => one[side]));
    const [left, right] = [ends("left", Math.min), ends("right", Math.max)];
    const [top, bottom] = [ends("top", Math.min), ends("bottom", Math.max)];
    return { left, right, top, bottom, width: right - left, height: bottom - top };
  }

  /** Returns the elements that may cut off an element's content, and in which direction each of them scrolls. */
  const framesOf = once((one) => {
    const frames = [];
    let isSkipping = false;
    for (let frame = one; frame; frame = frame.parentElement) {
      const { position, overflowX: across, overflowY: down } = getComputedStyle(frame);
      const isInner = frame instanceof SVGElement && frame.ownerSVGElement;
      if (!isSkipping || position !== "static") {
        isSkipping = false;
        const isPage = frame === document.body || frame === document.documentElement;
        if (!isPage && !isInner && (across !== "visible" || down !== "visible"))
          frames.push({ frame, box: frame.getBoundingClientRect(), across, down });
      }
      if (position === "fixed") break;
      if (position === "absolute" && !isInner) isSkipping = true;
    }
    return frames;
  });

  /** Returns the part of a box that can be seen, and whether another part can never be seen, however one scrolls. */
  function seenOf(one, box) {
    let seen = box;
    let isCut = false;
    for (const { box: frame, across, down } of framesOf(one)) {
      const scrolls = (way) => way === "auto" || way === "scroll";
      const isBeside = across !== "visible" && (seen.left < frame.left - 1.5 || seen.right > frame.right + 1.5);
      const isBeyond = down !== "visible" && (seen.top < frame.top - 4 || seen.bottom > frame.bottom + 4);
      if ((isBeside && !scrolls(across)) || (isBeyond && !scrolls(down))) isCut = true;
      seen = sharedBy(seen, {
        left: across === "visible" ? -Infinity : frame.left,
        right: across === "visible" ? Infinity : frame.right,
        top: down === "visible" ? -Infinity : frame.top,
        bottom: down === "visible" ? Infinity : frame.bottom,
      });
    }
    return { seen, isCut };
  }

  // Texts

  /** Returns the size of an element's letters on the screen. */
  function sizeOf(one) {
    const size = parseFloat(getComputedStyle(one).fontSize);
    const matrix = one instanceof SVGElement ? one.getScreenCTM?.() : null;
    const scale = matrix ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 1;
    return size * scale;
  }

  /** Returns the visible texts: a text of a picture as a whole, another text line by line. */
  function texts() {
    const found = new Map();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const parent = node.parentElement;
      if (!node.data.trim() || !isShown(parent)) continue;
      const whole = parent.closest("text");
      const made = found.get(whole ?? node) ?? { one: whole ?? parent, text: "", lines: [], size: Infinity };
      made.text += node.data;
      made.size = Math.min(made.size, sizeOf(parent));
      if (whole) made.lines = [whole.getBoundingClientRect()];
      else {
        const range = document.createRange();
        range.selectNodeContents(node);
        made.lines = [...range.getClientRects()];
      }
      found.set(whole ?? node, made);
    }
    return [...found.values()].flatMap((made) => {
      const lines = made.lines.filter(({ width, height }) => width > 1 && height > 1);
      const seen = lines.map((line) => seenOf(made.one, line));
      const isSeen = ({ seen: box }) =>
        box.width > 1 && box.height > 1 && box.right > 0 && box.left < innerWidth;
      if (!seen.some(isSeen)) return [];
      const isCut = seen.some((line) => line.isCut) && !made.one.closest("[title]");
      return [{ ...made, plane: planeOf(made.one), isCut, lines: seen.filter(isSeen).map((line) => line.seen) }];
    });
  }

  // What lies above

  const brush = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const colours = new Map();

  /** Returns red, green, blue (0 to 255) and alpha (0 to 1) of a colour in any notation. */
  function colourOf(written) {
    if (!colours.has(written)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = written;
      brush.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = brush.getImageData(0, 0, 1, 1).data;
      colours.set(written, [red, green, blue, alpha / 255]);
    }
    return colours.get(written);
  }

  /** Returns the colour with which an element fills its area; null if it is a picture or a gradient. */
  const groundOf = once((one) => {
    const style = getComputedStyle(one);
    if (one.matches("canvas, img, image") || style.backgroundImage !== "none" || style.fill.startsWith("url")) return null;
    const isShape = one.matches("rect, path, circle, ellipse, polygon");
    if (one instanceof SVGElement && !isShape && one.ownerSVGElement) return [0, 0, 0, 0];
    const [paint, share] = isShape ? [style.fill, Number(style.fillOpacity)] : [style.backgroundColor, 1];
    if (paint === "none") return [0, 0, 0, 0];
    const [red, green, blue, alpha] = colourOf(paint);
    return [red, green, blue, alpha * share * opacityOf(one)];
  });

  const opacityOf = once(
    (one) => Number(getComputedStyle(one).opacity) * (one.parentElement ? opacityOf(one.parentElement) : 1),
  );

  const isOpaque = (one) => (groundOf(one)?.[3] ?? 0) > 0.9;

  /** Returns the first of these elements, from the top down to the element itself, that hides the element. */
  function coverOf(one, stack, hides) {
    for (const above of stack) {
      if (isWithin(above, one)) return null;
      if (hides(above)) return above;
    }
    return null;
  }

  /** Returns the plane above the page to which an element belongs, such as a sheet or a heading that stays in view. */
  const planeOf = once((one) => {
    if (one.matches(PLANES) || getComputedStyle(one).position === "sticky") return one;
    return one.parentElement && planeOf(one.parentElement);
  });

  /** Returns whether something is meant to lie above an element. */
  function isMeant(cover, one) {
    const plane = planeOf(cover) ?? cover.querySelector(PLANES);
    return plane !== null && !plane.contains(one);
  }

  /** Returns whether a picture hides a text of its own as a whole. */
  function isVeil(cover, one, line) {
    const { left, right, top, bottom } = cover.getBoundingClientRect();
    const isWhole = left <= line.left && right >= line.right && top <= line.top && bottom >= line.bottom;
    return isWhole && one instanceof SVGElement && cover.ownerSVGElement === one.ownerSVGElement;
  }

  const planes = [...document.querySelectorAll(PLANES)].filter(isShown).map((one) => [one, one.getBoundingClientRect()]);

  /** Returns whether a plane hides a point outside the window, where the browser does not say what lies above. */
  const isUnder = (one, x, y) =>
    planes.some(
      ([plane, box]) =>
        !plane.contains(one) && x > box.left && x < box.right && y > box.top && y < box.bottom && !one.contains(plane),
    );

  const stacks = new Map();

  /** Returns the elements at a point, from the top down. */
  function stackAt(x, y) {
    const key = `${x} ${y}`;
    if (!stacks.has(key)) stacks.set(key, document.elementsFromPoint(x, y));
    return stacks.get(key);
  }

  const isInWindow = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  const middleOf = ({ left, right, top, bottom }) => [(left + right) / 2, (top + bottom) / 2];

  /** Returns the controls that a reader can see; reports each one that something covers. */
  function controls() {
    return all(CONTROLS).flatMap((one) => {
      const whole = one.getBoundingClientRect();
      const { seen } = seenOf(one, whole);
      if (seen.width < 1 || seen.height < 1 || seen.right <= 0 || seen.left >= innerWidth) return [];
      const [x, y] = middleOf(seen);
      if (!isInWindow(x, y)) return isUnder(one, x, y) ? [] : [{ one, box: seen }];
      const above = document.elementFromPoint(x, y);
      const cover = above && !isWithin(above, one) && !above.closest("label")?.contains(one) ? above : null;
      if (cover && isMeant(cover, one)) return [];
      if (cover && one.matches(PRESSED) && !(one instanceof SVGElement)) report(one, `is covered by ${nameOf(cover)}`);
      return [{ one, box: seen }];
    });
  }

  /** Returns the texts that no plane hides; reports each one that something else covers. */
  function readable(found) {
    const left = found.filter(({ one, lines }) => {
      for (const line of lines) {
        const [x, y] = middleOf(line);
        if (!isInWindow(x, y)) {
          if (isUnder(one, x, y)) return false;
          continue;
        }
        const cover = coverOf(one, stackAt(x, y), isOpaque);
        if (!cover) continue;
        if (isMeant(cover, one) || isVeil(cover, one, line)) return false;
        report(one, `is covered by ${nameOf(cover)}`);
      }
      return true;
    });
    return left;
  }

  /** Reports each text beside a picture that lies on something drawn in the picture. */
  function lieOnPictures(found) {
    for (const { one, lines } of found) {
      if (one instanceof SVGElement) continue;
      for (const line of lines)
        for (let x = line.left + 2; x < line.right; x += 16)
          for (const y of [line.top + 5, line.bottom - 5]) {
            const drawn = drawnUnder(one, x, y);
            if (drawn) report(one, `lies on the picture's ${drawn.localName}`);
          }
    }
  }

  /** Returns what a picture shows at a point under a text; a veil in the page's colour shows nothing. */
  function drawnUnder(one, x, y) {
    const paper = String(groundOf(one.closest("section") ?? document.body)?.slice(0, 3));
    for (const under of stackAt(x, y)) {
      if (!(under instanceof SVGElement && under.ownerSVGElement) || isWithin(under, one) || !isShown(under)) continue;
      const ground = groundOf(under);
      const isVeil = ground?.[3] > 0.5 && String(ground.slice(0, 3)) === paper;
      return isVeil ? null : under;
    }
    return null;
  }

  // The measures

  function measureText({ one, text, size, isCut, lines }) {
    const least = Object.entries(wanted.least).reduce(
      (most, [selector, px]) => (one.matches(selector) || one.closest(selector) ? Math.max(most, px) : most),
      0,
    );
    if (size < least - 0.01) report(one, `has letters of ${size.toFixed(1)} px, at least ${least} are wanted`);
    if (isCut) report(one, "is cut off");
    if (/^[·…]$/.test(text.trim()) && one.matches(wanted.named)) report(one, "stands for a word that has no room");
    for (const line of lines) measureEnds(one, line);
  }

  /** Reports a text whose colour is too close to what lies below it, by the thresholds of WCAG 2.2 (1.4.3). */
  function measureContrast({ one, size, lines }) {
    if (one.closest(":disabled, [aria-disabled=true]")) return;
    const style = getComputedStyle(one);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const [x, y] = middleOf(lines[0]);
    const stack = stackAt(x, y);
    const from = stack.findIndex((other) => isWithin(other, one));
    if (from < 0) return; // outside the window
    const grounds = stack.slice(from).filter((other) => other !== one || !(one instanceof SVGElement));
    const isOutlined = one instanceof SVGElement && style.paintOrder.startsWith("stroke") && style.stroke !== "none";
    let ground = isOutlined ? colourOf(style.stroke) : [0, 0, 0, 0];
    for (const below of grounds.map(groundOf)) {
      if (!below) return;
      ground = mixed(ground, below);
      if (ground[3] > 0.99) break;
    }
    ground = mixed(ground, [255, 255, 255, 1]);
    const [red, green, blue, alpha] = colourOf(one instanceof SVGElement ? style.fill : style.color);
    if (alpha === 0) return; // the text is not to be seen, only what underlines it
    const ratio = contrastOf(mixed([red, green, blue, alpha * opacityOf(one)], ground), ground);
    if (ratio < (isLarge ? 3 : 4.5) - 0.01) report(one, `has a contrast of ${ratio.toFixed(2)}`);
  }

  /** Returns the colour of one layer over another. */
  function mixed(above, below) {
    const rest = below[3] * (1 - above[3]);
    const alpha = above[3] + rest;
    return [...[0, 1, 2].map((at) => (above[at] * above[3] + below[at] * rest) / (alpha || 1)), alpha];
  }

  function contrastOf(...pair) {
    const light = ([red, green, blue]) => {
      const [r, g, b] = [red, green, blue].map((one) =>
        one <= 10.31475 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [low, high] = pair.map(light).sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
  }

  function measureEnds(one, box) {
    if (box.left + scrollX < -1.5 || box.top + scrollY < -4) report(one, "begins outside the page");
    const isScrolled = framesOf(one).some(({ across }) => across === "auto" || across === "scroll");
    if (box.right > innerWidth + 1.5 && !isScrolled) report(one, "ends outside the window");
    if (wanted.scrolls.includes("page")) return;
    if (box.bottom > innerHeight + 4) report(one, "ends below the window");
  }

  function measureTextPairs(found) {
    const lines = found.flatMap(({ one, plane, lines: boxes }) => boxes.map((box) => ({ one, plane, box })));
    lines.sort((one, other) => one.box.top - other.box.top);
    lines.forEach(({ one, plane, box }, at) => {
      for (let next = at + 1; next < lines.length && lines[next].box.top < box.bottom; next++) {
        const other = lines[next];
        if (one !== other.one && plane === other.plane && isOver(box, other.box)) report(one, `crosses ${nameOf(other.one)}`);
      }
    });
  }

  /** Returns whether one sees where a control ends. */
  function hasEdge(one) {
    const { borderTopStyle, borderTopWidth } = getComputedStyle(one);
    return isOpaque(one) || (borderTopStyle !== "none" && borderTopWidth !== "0px");
  }

  function measureControls(found, read) {
    const flat = found
      .filter(({ one }) => one.matches(PRESSED) && !(one instanceof SVGElement))
      .map((each) => ({ ...each, plane: planeOf(each.one) }));
    flat.forEach(({ one, box, plane }, at) => {
      measureEnds(one, box);
      for (const { one: other, box: there, plane: its } of flat.slice(at + 1))
        if (plane === its && !isWithin(one, other) && isOver(box, there, 2, 2)) report(one, `overlaps ${nameOf(other)}`);
      if (!hasEdge(one)) return;
      for (const { one: text, plane: its, lines } of read) {
        const isOwn = isWithin(one, text) || text.closest("label, [aria-hidden=true]");
        if (plane === its && !isOwn && lines.some((line) => isOver(box, line)))
          report(one, `overlaps the text of ${nameOf(text)}`);
      }
    });
    for (const [selector, [across, down]] of Object.entries(wanted.targets))
      for (const one of all(selector)) {
        const { width, height } = one.getBoundingClientRect();
        const isLink = getComputedStyle(one).textDecorationLine === "underline"; // a link in a text is as high as the text
        if (!isLink && (height < down || width < across))
          report(one, `is ${Math.round(width)} × ${Math.round(height)} px, at least ${across} × ${down} are wanted`);
      }
    for (const one of all(wanted.dragged))
      if (getComputedStyle(one).touchAction !== "none") report(one, "scrolls the page when a finger drags it");
    const stops = found.filter(({ one }) => one.tabIndex >= 0 && !one.disabled && one.matches(FOCUSABLE)).length;
    if (stops > wanted.stops) defects.add(`the Tab key stops ${stops} times, at most ${wanted.stops} are wanted`);
  }

  /** Whether one sees a shape; a transparent one only takes clicks. */
  function isPainted(shape) {
    const { fill, stroke } = getComputedStyle(shape);
    return [fill, stroke].some((paint) => paint !== "none" && paint !== "rgba(0, 0, 0, 0)");
  }

  /** Reports each text of a picture that crosses an edge of its own rectangle, found by the same data attribute. */
  function measureEdges(found) {
    for (const { one, lines } of found.filter(({ one: text }) => text.matches(wanted.edges))) {
      const group = one.closest("[data-box], [data-guess], [data-word]");
      const { box } = group.dataset;
      const near = box ? [...document.querySelectorAll(`[data-box="${box}"]`)] : [group];
      const frames = near.flatMap((own) => [...own.querySelectorAll("rect")]).filter(
        (frame) => isShown(frame) && isPainted(frame),
      );
      for (const line of lines)
        for (const frame of frames.map((own) => own.getBoundingClientRect())) {
          const [, y] = middleOf(line);
          const isBeside = y < frame.top || y > frame.bottom || frame.width < 12;
          const crosses = (x) => line.left < x - 1.5 && line.right > x + 1.5;
          if (!isBeside && (crosses(frame.left) || crosses(frame.right))) report(one, "crosses the edge of its box");
        }
    }
  }

  function measureScrolling() {
    const { documentElement: root, body } = document;
    const wide = Math.max(root.scrollWidth, body.scrollWidth);
    if (wide > innerWidth) defects.add(`the page is ${wide} px wide, and the window ${innerWidth}`);
    if (!wanted.scrolls.includes("page") && root.scrollHeight > innerHeight)
      defects.add(`the page is ${root.scrollHeight} px high, and the window ${innerHeight}`);
    for (const one of all("body *:not(svg *)")) {
      const style = getComputedStyle(one);
      const scrolls = (way) => /auto|scroll/.test(style[way]);
      if (scrolls("overflowX") && !wanted.scrolls.includes("across") && one.scrollWidth > one.clientWidth) report(one, `scrolls sideways by ${one.scrollWidth - one.clientWidth} px`);
      if (scrolls("overflowY") && !wanted.scrolls.includes("down") && one.scrollHeight > one.clientHeight) report(one, `scrolls down by ${one.scrollHeight - one.clientHeight} px`);
    }
  }

  function measureOrder() {
    let above = null;
    for (const selector of wanted.order) {
      const found = all(selector);
      if (found.length === 0) {
        defects.add(`nothing is a ${selector}`);
        continue;
      }
      const box = unionOf(found.map((one) => one.getBoundingClientRect()));
      if (above && box.top < above.box.bottom - 0.5) defects.add(`${selector} begins above the end of ${above.selector}`);
      above = { selector, box };
    }
  }

  /** Reports each element of which a part lies outside its container or, without one, outside what can be seen now. */
  function measureWholeness() {
    for (const [selector, container] of Object.entries(wanted.inside))
      for (const one of all(selector)) {
        const box = one.getBoundingClientRect();
        const room = container ? one.closest(container).getBoundingClientRect() : seenOf(one, box).seen;
        const { width, height } = sharedBy(sharedBy(box, room), { left: 0, top: 0, right: innerWidth, bottom: innerHeight });
        if (width < box.width - 0.5 || height < box.height - 0.5) report(one, "is not seen as a whole");
      }
  }

  function measureLikeness() {
    const grounds = new Set(all(wanted.alike || ":not(*)").map((one) => getComputedStyle(one).backgroundColor));
    if (wanted.alike && grounds.size !== 1) defects.add(`${wanted.alike} has ${grounds.size} backgrounds`);
    for (const [selector, count] of Object.entries(wanted.counts))
      if (all(selector).length !== count) defects.add(`${all(selector).length} are ${selector}, ${count} are wanted`);
  }

  const pressed = controls();
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { pointer-events: auto !important }");
  document.adoptedStyleSheets.push(sheet); // now elementsFromPoint finds everything that is drawn
  const read = readable(texts());
  read.forEach(measureContrast);
  if (wanted.apart) lieOnPictures(read);
  document.adoptedStyleSheets.pop();
  read.forEach(measureText);
  measureTextPairs(read);
  measureControls(pressed, read);
  measureEdges(read);
  measureScrolling();
  measureOrder();
  measureWholeness();
  measureLikeness();
  if (wanted.axe)
    for (const { id, impact, nodes } of (await axe.run(document, AXE)).violations)
      if (impact === "serious" || impact === "critical") defects.add(`axe: ${id}: ${nodes[0].html.slice(0, 90)}`);
  return [...defects];
}
