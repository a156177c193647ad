// What is wrong with how a page looks, as lists of sentences by kind. Evaluated in the page.
() => {
  const wrong = { scrolling: [], overlapping: [], clipped: [], faint: [], small: [], unnamed: [] };
  const said = (element) => (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 60);
  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const root = document.documentElement;

  if (root.scrollWidth > root.clientWidth)
    wrong.scrolling.push(`the page is ${root.scrollWidth} wide on ${root.clientWidth}`);

  // Letters of charts: not over each other, and not over what stands around the chart.
  const touch = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const figure = svg.closest("figure");
    const texts = [...svg.querySelectorAll("text")].filter((text) => said(text));
    const around = figure ? [...figure.children].filter((c) => c !== svg && shown(c)) : [];
    texts.forEach((text, index) => {
      const box = text.getBoundingClientRect();
      for (const other of [...texts.slice(index + 1), ...around])
        if (touch(box, other.getBoundingClientRect()))
          wrong.overlapping.push(`"${said(text)}" and "${said(other)}"`);
      if (!figure) return;
      const room = figure.getBoundingClientRect();
      if (box.left < room.left - 1 || box.right > room.right + 1)
        wrong.clipped.push(`"${said(text)}" leaves its figure`);
    });
    if (!svg.getAttribute("aria-label")) wrong.unnamed.push("a drawing has no words");
    if (!figure || !figure.querySelector("details table tbody td"))
      wrong.unnamed.push(`no table behind "${svg.getAttribute("aria-label")}"`);
  }

  // Letters on paper.
  const number = (color) => {
    const parts = color.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) =>
      c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, alpha } = number(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !shown(element)) continue;
    const style = getComputedStyle(element);
    const ink = number(element.closest("svg") ? style.fill : style.color).rgb;
    const [low, high] = [light(ink), light(behind(element))].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) wrong.faint.push(`${contrast.toFixed(1)}: "${said(element)}"`);
    if (parseFloat(style.fontSize) < 12) wrong.small.push(`${style.fontSize}: "${said(element)}"`);
    // What scrolls by itself may be wider than the screen; all else has to be on it.
    let within = element;
    while (within && !["auto", "scroll"].includes(getComputedStyle(within).overflowX))
      within = within.parentElement;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects())
      if (!within && (box.left < -1 || box.right > root.clientWidth + 1))
        wrong.clipped.push(`"${said(element)}" leaves the screen`);
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const hides = ["hidden", "clip"].includes(getComputedStyle(at).overflowX);
      if (hides && !at.closest("svg") && at.scrollWidth > at.clientWidth + 1)
        wrong.clipped.push(`"${said(at)}" is cut`);
    }
  }
  return wrong;
}
