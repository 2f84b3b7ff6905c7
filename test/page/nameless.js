// Lists what a screen reader could not name: pictures, fields, buttons and links without a name, ids that occur twice,
// and headings that skip a level.
(() => {
  const faults = [];
  const labelled = node => node.getAttribute('aria-label') || node.textContent.trim() || [...(node.labels || [])].some(l => l.textContent.trim()) ||
    (node.getAttribute('aria-labelledby') && document.getElementById(node.getAttribute('aria-labelledby')));
  for (const node of document.querySelectorAll('[role=img], svg:not([aria-hidden]), input, button, a[href], section, nav, summary')) {
    if (!labelled(node)) faults.push('no name: ' + node.outerHTML.slice(0, 120));
  }
  const ids = [...document.querySelectorAll('[id]')].map(node => node.id);
  for (const id of new Set(ids)) if (ids.filter(other => other === id).length > 1) faults.push('twice the id ' + id);
  let level = 0;
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    if (!heading.getClientRects().length) continue;
    const now = Number(heading.tagName[1]);
    if (now > level + 1) faults.push(`heading ${heading.textContent} of level ${now} after level ${level}`);
    level = now;
  }
  return faults;
})()
