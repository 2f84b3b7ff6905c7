// The scale of a bar ends at the maximum of the group, or beyond it if the group is larger. With a very high maximum, such
// as KubeRay's default, the bar would be too short to see, so the scale ends earlier.
const shortest = 20;
function scaleOf(group) {
  const used = Math.max(group.current, group.desired, group.min, 1);
  return Math.max(used, Math.min(group.max, Math.max(shortest, 4 * used)));
}

const barKey = [['busy', 'busy'], ['idle', 'idle'], ['starting', 'starting'], ['leaving', 'leaving'], ['wanted', 'desired']];

const unlimited = 2147483647; // KubeRay's default of maxReplicas
const maximum = n => n >= unlimited ? 'no max' : `max ${n}`;

function bar(group) {
  const scale = scaleOf(group);
  const at = n => (100 * n / scale) + '%';
  const part = (kind, n) => {
    const node = element('div', {class: kind});
    node.style.width = at(n);
    return node;
  };
  const mark = (kind, n, text) => {
    const edge = n / scale > 0.85 ? ' end' : n / scale < 0.15 ? ' start' : '';
    const node = element('div', {class: 'mark ' + kind + edge}, element('span', {text}));
    node.style.left = at(n);
    return node;
  };
  const far = group.max > scale;
  const marks = group.min === group.max ? [mark('', group.max, `min = max ${group.max}`)] :
    [mark('', group.min, `min ${group.min}`), mark('', far ? scale : group.max, maximum(group.max) + (far ? ' →' : ''))];
  const label = `${group.name}: ${group.ready} ready, ${group.idle} of them idle, ${group.starting} starting, ${group.leaving} leaving; ` +
    `desired ${group.desired}, min ${group.min}, ${maximum(group.max)}`;
  return element('div', {class: 'bar', role: 'img', 'aria-label': label},
    element('div', {class: 'fill'}, part('busy', group.ready - group.idle), part('idle', group.idle), part('starting', group.starting), part('leaving', group.leaving)),
    ...marks, mark('desired', group.desired, `desired ${group.desired}`));
}

// numGPUsText lists the number of GPUs of a worker from each source; empty if all are unknown.
function numGPUsText(n) {
  const columns = ['declared', 'derived', 'reported', 'ray'];
  if (columns.every(column => n[column] === null)) return '';
  return 'num-gpus: ' + columns.map(column => `${column === 'ray' ? 'Ray reports' : column} ${n[column] === null ? '–' : n[column]}`).join(' · ');
}

function numGPUsView(n) {
  const text = numGPUsText(n);
  if (!text) return null;
  const sources = Object.entries(n.sources).filter(([, source]) => source).map(([column, source]) => `${column}: ${source}`).join('; ');
  const sync = n.mismatch && n.sync.code ? ` Not written (${n.sync.mode}): ${n.sync.why}` : '';
  return element('p', {class: 'quiet gpus', title: sources}, n.mismatch ? tag('mismatch', 'warning') : null, text, sync);
}

function groupView(group) {
  const sizes = [`${group.current} now`];
  if (group.desired !== group.current) sizes.push(`→ ${group.desired}`);
  if (group.asked !== group.desired) sizes.push(`· ${group.asked} asked`);
  sizes.push(`· ${group.ready} ready` + (group.idle ? `, ${group.idle} idle` : ''));
  if (group.starting) sizes.push(`· ${group.starting} starting`);
  if (group.leaving) sizes.push(`· ${group.leaving} leaving`);
  return element('div', {class: 'group'},
    element('div', {class: 'line'},
      element('h3', {}, group.name + ' ', element('span', {class: 'quiet code', text: bundle(group.resources)})),
      element('span', {class: 'sizes', text: sizes.join(' ')})),
    bar(group),
    numGPUsView(group.numGpus),
    element('ul', {class: 'reasons'},
      ...(group.closed && !group.reasons.some(reason => reason.code === 'closed') ? [element('li', {}, tag('closed', 'warning'), group.closed)] : []),
      ...group.reasons.map(reason => element('li', {}, tag(reason.code), reason.message))));
}
