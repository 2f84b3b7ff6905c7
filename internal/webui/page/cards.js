// Nodes and their cards. A picture shows a MIG card along its memory axis with each instance in its place, a card with
// shared memory as a bar, and a whole card as a square. Unknown values appear as text only.

const gibibytes = mib => `${Math.round(mib / 102.4) / 10} GiB`;

function nodepoolsView(nodepools) {
  const pools = new Map();
  for (const node of nodepools.nodes) pools.set(node.pool || '', [...(pools.get(node.pool || '') || []), node]);
  const known = new Map(nodepools.pools.map(pool => [pool.name, pool]));
  const names = [...new Set([...known.keys(), ...pools.keys()])].sort((a, b) => (a === '') - (b === '') || (a < b ? -1 : 1)); // nodes without a pool last
  const gpus = node => node.kind !== 'unknown' || (node.units && Object.values(node.units).some(n => n > 0)) || node.problems.length > 0;
  const parts = [element('div', {class: 'top'}, element('h2', {text: 'GPU nodes'}),
    element('p', {class: 'where'}, `${plural(nodepools.nodes.length, 'node')} in ${plural(known.size, 'pool')} · `, jsonLink('/v1/nodepools', 'JSON')))];
  for (const note of nodepools.notes || []) parts.push(element('p', {class: 'banner warning', text: note}));
  for (const name of names) {
    const nodes = (pools.get(name) || []).filter(gpus);
    if (nodes.length || known.has(name)) parts.push(poolView(name, known.get(name), nodes));
  }
  if (parts.some(part => part.querySelector('.card [role=img]'))) {
    parts[0].append(keyOf([['taken', 'taken'], ['free', 'free'], ['none', 'no instance']]));
  }
  if (parts.length === 1) parts.push(element('section', {}, nothing('There are no nodes with GPUs. Without access to Nodes, Heliostat plans with the GPUs that the RayClusters declare.')));
  return parts;
}

// shownNodes is how many nodes of one pool the page shows.
const shownNodes = 64;

function poolView(name, pool, nodes) {
  const facts = [];
  if (pool) {
    facts.push(plural(pool.nodes, 'node') + (pool.schedulable < pool.nodes ? `, ${pool.schedulable} schedulable` : ''));
    if (pool.product) facts.push(pool.product);
    if (pool.cards !== null) facts.push(plural(pool.cards, 'card'));
    facts.push(pool.kind);
    if (pool.isolation) facts.push('isolation ' + pool.isolation);
    if (pool.spot) facts.push('spot');
    if (pool.price !== null && pool.price !== undefined) facts.push(`${pool.price} an hour`);
  }
  const problems = pool && pool.problems ? tag(plural(pool.problems, 'problem'), 'warning') : null;
  return element('section', {}, element('details', {'data-key': 'pool-' + name},
    element('summary', {}, element('h2', {text: name || 'no pool'}), element('span', {class: 'quiet', text: ' ' + facts.join(' · ') + ' '}), problems),
    element('ul', {class: 'nodes'}, ...nodes.slice(0, shownNodes).map(nodeView)),
    nodes.length > shownNodes ? nothing(`${nodes.length - shownNodes} more nodes are in the JSON.`) : null));
}

function nodeView(node) {
  const units = Object.entries(node.units || {}).filter(([, n]) => n > 0).map(([resource, n]) => {
    const memory = (node.memoryMiB || {})[resource];
    const free = node.free && resource in node.free ? `, ${node.free[resource]} free` : '';
    return `${n} × ${resource}${memory ? ` of ${gibibytes(memory)}` : ''}${free}`;
  });
  return element('li', {class: 'node'},
    element('p', {class: 'line'}, element('strong', {text: node.name}), element('span', {class: 'quiet', text: [node.product, node.kind].filter(Boolean).join(' · ')})),
    units.length ? element('p', {class: 'code', text: units.join('; ')}) : null,
    node.perCard && node.perCard.length ? element('div', {class: 'cards'}, ...node.perCard.map(card => cardView(card, node))) : null,
    node.problems.length ? element('ul', {class: 'reasons'}, ...node.problems.map(problemView)) : null);
}

// The text of a problem is a code, a colon and a sentence.
function problemView(problem) {
  const colon = problem.indexOf(': ');
  return element('li', {}, tag(problem.slice(0, Math.max(colon, 0)) || 'problem', 'warning'), problem.slice(colon < 0 ? 0 : colon + 2));
}

function cardView(card, node) {
  const name = card.index === null ? 'a card' : `card ${card.index}`;
  const words = cardWords(card);
  const picture = card.healthy === false ? null : card.instances && card.instances.length ? migGrid(card)
    : card.freeMiB !== null && card.memoryMiB ? memoryBar(card.memoryMiB - card.freeMiB, card.memoryMiB)
    : node.kind === 'whole' && card.freeUnits !== null ? memoryBar(card.freeUnits > 0 ? 0 : 1, 1) : null;
  const label = `${name}: ${words}`;
  return element('figure', {class: 'card' + (card.healthy === false ? ' ill' : '')},
    picture ? element('div', {role: 'img', 'aria-label': label}, picture) : null,
    element('figcaption', {text: picture ? `${name}${card.freeMiB === null ? '' : `, ${gibibytes(card.freeMiB)} free`}` : label}));
}

function cardWords(card) {
  if (card.healthy === false) return 'not healthy' + (card.problem ? `: ${card.problem}` : '');
  const words = [];
  for (const instance of card.instances || []) {
    words.push(instance.profile + (instance.free === null ? '' : instance.free ? ' free' : ' taken'));
  }
  if (card.freeMiB !== null) words.push(`${gibibytes(card.freeMiB)} free` + (card.memoryMiB ? ` of ${gibibytes(card.memoryMiB)}` : ''));
  if (card.freeCores !== null) words.push(`${card.freeCores} % of compute free`);
  if (card.freeUnits !== null && card.freeMiB === null) words.push(`${plural(card.freeUnits, 'unit')} free`);
  return words.length ? words.join(', ') : 'no data';
}

function memoryBar(used, total) {
  const fill = element('div', {class: 'taken'});
  fill.style.width = (100 * used / total) + '%';
  return element('div', {class: 'memory'}, fill);
}

// migGrid shows the instances of a card along its memory axis, one after the other if a start is unknown.
function migGrid(card) {
  const sizes = card.instances.map(instance => instance.size || 1);
  const placed = card.instances.every(instance => instance.start !== null && instance.size);
  const axis = placed && card.memoryUnits ? card.memoryUnits : sizes.reduce((a, b) => a + b, 0);
  const grid = element('div', {class: 'mig'});
  grid.style.gridTemplateColumns = `repeat(${axis}, 1fr)`;
  const taken = new Set();
  card.instances.forEach((instance, i) => {
    const cell = element('div', {class: instance.free === null ? 'instance' : instance.free ? 'instance free' : 'instance taken', title: instance.profile,
      text: sizes[i] < 2 && axis > 4 ? instance.profile.split('.')[0] : instance.profile}); // a narrow cell has room for 1g only
    if (placed) {
      cell.style.gridColumn = `${instance.start + 1} / span ${sizes[i]}`;
      for (let unit = instance.start; unit < instance.start + sizes[i]; unit++) taken.add(unit);
    } else {
      cell.style.gridColumn = `span ${sizes[i]}`;
    }
    cell.style.gridRow = '1';
    grid.append(cell);
  });
  for (let unit = 0; placed && unit < axis; unit++) {
    if (taken.has(unit)) continue;
    const cell = element('div', {class: 'instance none'});
    cell.style.gridColumn = `${unit + 1}`;
    cell.style.gridRow = '1';
    grid.append(cell);
  }
  return grid;
}
