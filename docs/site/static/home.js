// The home page: the explorer is fetched once the outline is on the screen, and follows the site's theme.
{
  const stage = document.getElementById("stage");
  if (stage) {
    const frame = document.createElement("iframe");
    frame.title = stage.getAttribute("aria-label");
    const address = () => {
      const { theme } = document.body.dataset;
      return `${stage.dataset.src}#${stage.dataset.state}${theme === "auto" ? "" : `&theme=${theme}`}`;
    };
    frame.addEventListener("load", () => {
      stage.classList.add("live");
      fit();
    });
    new PerformanceObserver((list, observer) => {
      if (list.getEntriesByName("first-contentful-paint").length === 0) return;
      observer.disconnect();
      frame.src = address();
      stage.append(frame);
    }).observe({ type: "paint", buffered: true });
    // Only the part after # changes, so that the page in the frame is not loaded again.
    new MutationObserver(() => frame.contentWindow?.location.replace(new URL(address(), location.href))).observe(
      document.body,
      { attributeFilter: ["data-theme"] },
    );

    /** Gives the frame the height of its page on a phone, so that one scrolls one page; not where a browser hides it. */
    function fit() {
      const { contentDocument } = frame;
      if (!contentDocument) return;
      new ResizeObserver(() => {
        const isNarrow = stage.clientWidth < 700;
        frame.style.height = isNarrow ? `${contentDocument.documentElement.scrollHeight}px` : "";
      }).observe(contentDocument.body);
    }
  }
}
