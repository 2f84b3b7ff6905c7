// What workers cost: what is idle now, with a command that helps, and the sums since Heliostat started.

const costsPath = '/v1/costs';
const noCosts = {items: [], idle: [], currency: ''};

// idleView is one line about a RayCluster in which something is idle.
function idleView(idle, linked) {
  const name = `${idle.namespace}/${idle.cluster}`;
  return element('li', {}, linked ? element('a', {href: hashOf({namespace: idle.namespace, name: idle.cluster}), text: name}) : null, linked ? ': ' : null,
    idle.message, idle.command ? element('div', {}, code(idle.command)) : null);
}

// idleOf shows what is idle in one RayCluster.
function idleOf(costs, pick) {
  const idle = costs.idle.filter(i => i.namespace === pick.namespace && i.cluster === pick.name);
  return idle.length ? section('Idle', null, element('ul', {class: 'reasons'}, ...idle.map(i => idleView(i, false)))) : null;
}

// costRows adds up the causes of each RayCluster, the most expensive first.
function costRows(costs) {
  const sums = new Map();
  for (const item of costs.items) {
    const key = `${item.namespace}/${item.cluster}`;
    const sum = sums.get(key) || {key, gpuSeconds: 0, cost: 0, idle: 0};
    sum.gpuSeconds += item.gpuSeconds;
    sum.cost += item.cost;
    if (item.cause === 'idle') sum.idle += item.cost;
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => b.cost - a.cost || b.gpuSeconds - a.gpuSeconds)
    .map(sum => [sum.key, (sum.gpuSeconds / 3600).toFixed(1), sum.cost.toFixed(2), sum.idle.toFixed(2)]);
}

// shownCosts is how many RayClusters the page shows; the JSON has all.
const shownCosts = 200;

function costsView(costs) {
  const rows = costRows(costs);
  return [element('div', {class: 'top'}, element('h2', {text: 'Costs'}),
    element('p', {class: 'where'}, `of pods in ${costs.currency}, since ${new Date(costs.since).toLocaleString([], {hourCycle: 'h23'})} · `, jsonLink(costsPath, 'JSON'))),
    section('Idle now', costs.idle.length, costs.idle.length ? element('ul', {class: 'reasons'}, ...costs.idle.slice(0, shownCosts).map(i => idleView(i, true)))
      : nothing('Nothing is idle.')),
    section('RayClusters', rows.length, rows.length ? table('Costs', [{title: 'RayCluster'}, {title: 'GPU-hours', class: 'number'}, {title: 'cost', class: 'number'}, {title: 'of it idle', class: 'number'}],
      rows.slice(0, shownCosts)) : nothing('Nothing has been added up yet.'))];
}
