// Lists texts whose contrast with what is behind them is below WCAG 2.2 AA (1.4.3): 4.5, or 3 for large text; and fields and
// buttons whose border is below 3 (1.4.11).
(() => {
  const parse = color => { const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number); return {r, g, b, a}; };
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = c => 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.a === 1) return color;
    }
    return parse('rgb(255, 255, 255)');
  };
  const ratioOf = (ink, paper) => {
    const [high, low] = [luminance(ink), luminance(paper)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const faults = [];
  for (const node of document.querySelectorAll('input, button')) {
    if (!node.getClientRects().length) continue;
    const ratio = ratioOf(parse(getComputedStyle(node).borderTopColor), behind(node.parentElement));
    if (ratio < 3) faults.push(`too little contrast: ${ratio.toFixed(2)} the border of ${node.outerHTML.slice(0, 60)}`);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode());) {
    const node = text.parentElement;
    if (!text.data.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(node.tagName) || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const ink = parse(node instanceof SVGElement ? style.fill : style.color);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = ratioOf(ink, behind(node));
    if (ratio < (large ? 3 : 4.5)) faults.push(`too little contrast: ${ratio.toFixed(2)} ${node.tagName}.${node.className.baseVal ?? node.className}: ${text.data.trim().slice(0, 40)}`);
  }
  return faults;
})()
