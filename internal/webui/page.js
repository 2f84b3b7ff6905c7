
'use strict';

const pollMilliseconds = 1000;
const patienceMilliseconds = 10000; // a call that takes longer counts as failed
const byId = id => document.getElementById(id);

// element makes a DOM node. Everything the server says goes through textContent, so that no name can become markup.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name === 'text') node.textContent = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null));
  return node;
}

const tag = (text, kind = '') => element('span', {class: 'tag ' + kind, text});
const plural = (n, one, many = one + 's') => `${n} ${n === 1 ? one : many}`;

// Ray's units: memory in bytes, everything else as it stands.
function amount(name, value) {
  if (name !== 'memory' && name !== 'object_store_memory') return `${name} ${value}`;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let step = 0;
  while (value >= 1024 && step < units.length - 1) { value /= 1024; step++; }
  return `${name} ${Math.round(value * 10) / 10} ${units[step]}`;
}

function bundle(resources = {}) {
  const parts = Object.keys(resources).sort().map(name => amount(name, resources[name]));
  return parts.length ? '{' + parts.join(', ') + '}' : '{}';
}

function selectors(list = []) {
  return list.map(selector => Object.entries(selector).map(([key, value]) => `${key}=${value}`).join(' '))
    .filter(text => text !== '').join(', else ');
}

function gang(g) {
  const counts = new Map();
  g.bundles.forEach((b, i) => {
    const labels = selectors([(g.bundleLabelSelectors || [])[i] || {}]);
    const text = bundle(b) + (labels ? ' on ' + labels : '');
    counts.set(text, (counts.get(text) || 0) + 1);
  });
  return g.strategy + ' ' + [...counts].map(([text, n]) => `${n} × ${text}`).join(' + ');
}

function duration(seconds) {
  if (seconds < 10) return seconds.toFixed(1) + ' s';
  if (seconds < 120) return Math.round(seconds) + ' s';
  if (seconds < 7200) return Math.round(seconds / 60) + ' min';
  return Math.round(seconds / 3600) + ' h';
}

const clock = text => element('time', {datetime: text, title: text, text: new Date(text).toLocaleTimeString([], {hourCycle: 'h23'})});

function table(caption, columns, rows) {
  return element('div', {class: 'scroll'},
    element('table', {class: 'stack', 'aria-label': caption},
      element('thead', {}, element('tr', {}, ...columns.map(c => element('th', {scope: 'col', class: c.class, text: c.title})))),
      element('tbody', {}, ...rows.map(cells => element('tr', {}, ...cells.map((cell, i) =>
        element('td', {class: columns[i].class, 'data-label': columns[i].title}, cell)))))));
}

function section(title, count, ...content) {
  const id = 'section-' + title.replace(/\W+/g, '-').toLowerCase();
  return element('section', {'aria-labelledby': id},
    element('h2', {id}, title + ' ', element('span', {class: 'quiet', text: count === null ? '' : String(count)})), ...content);
}

const nothing = text => element('p', {class: 'note', text});

// The bar's scale ends at the maximum, or beyond it where the group is larger than it may be. A maximum that is far away,
// as KubeRay's default is, would leave nothing to see: then the scale ends earlier.
const shortest = 20;
function scaleOf(group) {
  const used = Math.max(group.current, group.desired, group.min, 1);
  return Math.max(used, Math.min(group.max, Math.max(shortest, 4 * used)));
}

const unlimited = 2147483647; // maxReplicas that nobody set
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
  const label = `${group.name}: ${group.ready} ready, ${group.starting} starting, ${group.leaving} leaving; ` +
    `desired ${group.desired}, min ${group.min}, ${maximum(group.max)}`;
  return element('div', {class: 'bar', role: 'img', 'aria-label': label},
    element('div', {class: 'fill'}, part('ready', group.ready), part('starting', group.starting), part('leaving', group.leaving)),
    ...marks, mark('desired', group.desired, `desired ${group.desired}`));
}

// numGPUsText says in a line how many GPUs a worker has, by all who say so; empty where nobody does.
function numGPUsText(n) {
  const columns = ['declared', 'derived', 'reported', 'ray'];
  if (columns.every(column => n[column] === null)) return '';
  return 'num-gpus: ' + columns.map(column => `${column === 'ray' ? 'Ray announces' : column} ${n[column] === null ? '–' : n[column]}`).join(' · ');
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
  sizes.push(`· ${group.ready} ready`);
  if (group.starting) sizes.push(`· ${group.starting} starting`);
  if (group.leaving) sizes.push(`· ${group.leaving} leaving`);
  return element('div', {class: 'group'},
    element('div', {class: 'line'},
      element('h3', {}, group.name + ' ', element('span', {class: 'quiet code', text: bundle(group.resources)})),
      element('span', {class: 'sizes', text: sizes.join(' ')})),
    bar(group),
    numGPUsView(group.numGpus),
    element('ul', {class: 'reasons'},
      ...(group.closed ? [element('li', {}, tag('closed', 'warning'), group.closed)] : []),
      ...group.reasons.map(reason => element('li', {}, tag(reason.code), reason.message))));
}

function key() {
  const entry = (kind, text) => element('span', {}, element('i', {class: kind}), text);
  return element('p', {class: 'key', 'aria-hidden': 'true'},
    entry('ready', 'ready'), entry('starting', 'starting'), entry('leaving', 'leaving'), entry('wanted', 'desired'));
}

function demandRows(cluster) {
  const shape = (what, request) => [what, element('span', {class: 'code', text: bundle(request.resources)}),
    String(request.count), selectors(request.labelSelectors)];
  return [
    ...cluster.demand.requests.map(r => shape('tasks and actors', r)),
    ...cluster.demand.gangs.map(g => ['placement group', element('span', {class: 'code', text: gang(g)}), '1', '']),
    ...cluster.demand.requestResources.map(r => shape('request_resources (Ray)', r)),
    ...cluster.requested.map(r => shape('request_resources (REST)', r)),
  ];
}

const kinds = {request: 'tasks and actors', gang: 'placement group', requestResources: 'request_resources'};

// fate says in words what becomes of a demand: the counts that are not zero.
function fate(d) {
  const parts = [[d.served, 'on what runs'], [d.waiting, 'wait for pods on their way' + (d.waitingSince ? ' since ' + clock(d.waitingSince) : '')],
    [d.launching, 'on pods launched now'], [d.coolingDown, 'wait for a group to cool down'], [d.capped, 'capped'], [d.closed, 'closed'],
    [d.impossible, 'impossible']];
  return parts.filter(([n]) => n).map(([n, text]) => `${n} ${text}`).join(', ');
}

// fateRows lists all demand with its fate. Before the first decision there is none.
function fateRows(cluster) {
  if (!cluster.summary.length) return demandRows(cluster).map(row => [...row, '']);
  return cluster.summary.map(d => [kinds[d.kind] || d.kind,
    element('span', {class: 'code', text: d.gang ? gang(d.gang) : bundle(d.resources)}), String(d.asked), selectors(d.labelSelectors), fate(d)]);
}

function unmetRows(cluster) {
  return cluster.unmet.map(u => [kinds[u.kind] || u.kind,
    element('span', {class: 'code', text: u.gang ? gang(u.gang) : bundle(u.resources)}), String(u.count),
    element('span', {}, tag(u.reason.code, 'bad'), u.reason.message)]);
}

function decisionRows(cluster) {
  return cluster.decisions.map(d => [clock(d.at), tag(d.action), d.group, d.from === d.to ? String(d.to) : `${d.from} → ${d.to}`,
    element('span', {}, d.reason.message, d.pods.length ? element('span', {class: 'quiet', text: ' ' + d.pods.join(', ')}) : '')]);
}

function findingView(f) {
  const where = [f.object, f.field].filter(Boolean).join(' ');
  return element('li', {class: 'finding'}, tag(f.severity, f.severity), tag(f.code),
    element('span', {class: 'code', text: where + (f.seen ? ': ' + f.seen : '')}),
    element('div', {text: f.why || ''}), f.fix ? element('div', {}, element('strong', {text: 'Fix: '}), f.fix) : null);
}

function fact(title, value, note) {
  return element('div', {}, element('dt', {text: title}), element('dd', {}, value, note ? element('span', {class: 'quiet', text: note}) : ''));
}

function topView(cluster) {
  const path = clusterPath(cluster.namespace, cluster.name);
  const age = cluster.dataAgeSeconds;
  const total = what => cluster.groups.reduce((sum, group) => sum + group[what], 0);
  return element('div', {class: 'top'},
    element('h2', {text: cluster.name}),
    element('p', {class: 'where'}, `namespace ${cluster.namespace} · `, element('a', {href: path, text: 'JSON'}), ' · ',
      element('a', {href: path + '/snapshot', text: 'snapshot'})),
    element('dl', {class: 'facts-list'},
      fact('Mode', cluster.mode, cluster.modeReason),
      fact('Workers', `${total('current')}${total('desired') === total('current') ? '' : ' → ' + total('desired')}`, `${total('ready')} ready`),
      fact('Last decision', cluster.lastCycle ? clock(cluster.lastCycle) : 'none yet', cluster.lastCycle ? `took ${(cluster.cycleSeconds * 1000).toFixed(1)} ms` : ''),
      fact('Ray’s account', age === null ? 'never read' : duration(age) + ' old')),
    cluster.frozen ? element('p', {class: 'banner warning', text: 'Frozen: nothing is written until the annotation heliostat.dev/freeze is removed.'}) : null,
    cluster.paused ? element('p', {class: 'banner warning', text: 'Nothing is taken away at present: ' + cluster.paused}) : null,
    cluster.error ? element('p', {class: 'banner', text: cluster.error}) : null);
}

function clusterView(cluster) {
  const demand = fateRows(cluster), unmet = unmetRows(cluster), decisions = decisionRows(cluster);
  const parts = [topView(cluster)];
  if (unmet.length) {
    parts.push(section('Not served', unmet.length, table('Demand that is not served',
      [{title: 'What'}, {title: 'Shape'}, {title: 'Count', class: 'number'}, {title: 'Why'}], unmet)));
  }
  parts.push(section('Worker groups', cluster.groups.length,
    ...(cluster.groups.length ? [key(), ...cluster.groups.map(groupView)] : [nothing('No worker groups.')])));
  parts.push(section('Demand', demand.length || null, demand.length ? table('Demand',
    [{title: 'What'}, {title: 'Shape'}, {title: 'Count', class: 'number'}, {title: 'Labels'}, {title: 'What becomes of it'}], demand) : nothing('Nothing waits.')));
  if (cluster.findings.length) {
    parts.push(section('Findings', cluster.findings.length, element('ul', {}, ...cluster.findings.map(findingView))));
  }
  parts.push(section('Recent decisions', null, decisions.length ? table('Recent decisions, newest first',
    [{title: 'Time', class: 'time'}, {title: 'Action'}, {title: 'Group'}, {title: 'Replicas', class: 'number'}, {title: 'Why'}], decisions)
    : nothing('Nothing has changed since Heliostat started.')));
  return parts;
}

// The chosen cluster stands in the address, #namespace/name, so that it can be linked to and survives a reload.
function chosen() {
  const [namespace, name] = location.hash.slice(1).split('/').map(part => { try { return decodeURIComponent(part); } catch { return ''; } });
  return namespace && name ? {namespace, name} : null;
}

const clusterPath = (namespace, name) => `/v1/namespaces/${encodeURIComponent(namespace)}/rayclusters/${encodeURIComponent(name)}`;
const hashOf = cluster => `#${encodeURIComponent(cluster.namespace)}/${encodeURIComponent(cluster.name)}`;

// The links are kept between polls, so that the keyboard's focus and the scroll position stay where they are.
const links = new Map();

function fleetLink(cluster) {
  const id = hashOf(cluster);
  let entry = links.get(id);
  if (!entry) {
    const link = element('a', {href: id}, element('span', {class: 'name'}), element('span', {class: 'facts'}));
    entry = {item: element('li', {}, link), link, shown: ''};
    links.set(id, entry);
  }
  const shown = JSON.stringify([cluster.mode, cluster.workers, cluster.unmet, cluster.waiting, cluster.findings, cluster.error !== '', cluster.frozen]);
  if (shown !== entry.shown) {
    entry.shown = shown;
    const {current, desired} = cluster.workers;
    const facts = [cluster.mode + (cluster.frozen ? ', frozen' : ''), desired === current ? plural(current, 'worker') : `${current} → ${plural(desired, 'worker')}`];
    if (cluster.waiting) facts.push(`${cluster.waiting} waiting`);
    const alarms = [];
    if (cluster.unmet) alarms.push(`${cluster.unmet} not served`);
    if (cluster.findings) alarms.push(plural(cluster.findings, 'finding'));
    if (cluster.error) alarms.push('error');
    entry.link.firstChild.replaceChildren(element('span', {class: 'quiet', text: cluster.namespace + '/'}), cluster.name);
    entry.link.lastChild.replaceChildren(facts.join(' · ') + (alarms.length ? ' · ' : ''), element('span', {class: 'alarm', text: alarms.join(', ')}));
  }
  return {id, ...entry};
}

let fleet = [];

function showFleet() {
  const words = byId('filter').value.trim().toLowerCase();
  const matching = fleet.filter(c => `${c.namespace}/${c.name}`.toLowerCase().includes(words));
  const pick = chosen(), current = pick && hashOf(pick);
  const entries = matching.map(fleetLink);
  for (const {id, link} of entries) {
    if (id === current) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  const list = byId('fleet'), items = entries.map(e => e.item);
  if (items.length !== list.children.length || items.some((item, i) => item !== list.children[i])) list.replaceChildren(...items);
  byId('fleet-count').textContent = words ? `${matching.length} of ${fleet.length}` : String(fleet.length);
  byId('filter-label').hidden = fleet.length < 8 && !words;
  const empty = byId('fleet-empty');
  empty.hidden = matching.length > 0;
  empty.textContent = fleet.length ? 'No cluster matches.' : 'No RayCluster is in sight. Create one, or look whether Heliostat watches its namespace.';
  const known = new Set(fleet.map(hashOf));
  for (const id of links.keys()) if (!known.has(id)) links.delete(id);
}

// Only the sections that changed are replaced: a text selection, a scroll position or a reader's place in the others stays.
function showCluster(parts) {
  const place = byId('cluster'), focused = place.contains(document.activeElement) && document.activeElement.getAttribute('href');
  parts.forEach((part, i) => {
    const old = place.children[i];
    if (!old) place.append(part);
    else if (!old.isEqualNode(part)) old.replaceWith(part);
  });
  while (place.children.length > parts.length) place.lastChild.remove();
  if (focused && !place.contains(document.activeElement)) {
    place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
  }
}

function showLink(up, text) {
  const link = byId('link');
  link.className = up ? 'up' : 'down';
  if (link.textContent !== text) link.textContent = text; // a change only, for it is read aloud
}

async function read(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(patienceMilliseconds), headers: {Accept: 'application/json'}});
  const body = await answer.json().catch(() => ({})); // not JSON, a proxy's page: the status says enough
  if (!answer.ok) throw Object.assign(new Error(body.detail || `the server answered ${answer.status}`), {status: answer.status});
  return body;
}

async function poll() {
  try {
    fleet = (await read('/v1/rayclusters')).items || [];
    showFleet();
    let pick = chosen();
    if (!pick && fleet.length) pick = {namespace: fleet[0].namespace, name: fleet[0].name};
    if (pick && !location.hash) { history.replaceState(null, '', hashOf(pick)); showFleet(); }
    document.title = pick ? `${pick.name} · Heliostat` : 'Heliostat';
    if (!pick) {
      showCluster([]);
    } else {
      try {
        const cluster = await read(clusterPath(pick.namespace, pick.name));
        const now = chosen();
        if (now && hashOf(now) === hashOf(pick)) showCluster(clusterView(cluster));
      } catch (error) {
        if (!error.status) throw error;
        showCluster([element('div', {class: 'top'},
          element('h2', {text: pick.name}), element('p', {class: 'banner', text: error.message}))]);
      }
    }
    showLink(true, 'Live');
  } catch (error) {
    showLink(false, 'No answer from Heliostat. What you see may be old; trying again.');
  }
}

// One poll at a time: a slow server is not asked faster than it answers. A hidden page asks nothing.
let timer = 0, polling = false;
async function run() {
  clearTimeout(timer);
  if (polling) return;
  polling = true;
  if (!document.hidden) await poll();
  polling = false;
  timer = setTimeout(run, pollMilliseconds);
}

// The skip link moves the focus only: the address after # names the chosen cluster.
document.querySelector('.skip').addEventListener('click', event => { event.preventDefault(); byId('cluster').focus(); });
byId('filter').addEventListener('input', showFleet);
addEventListener('hashchange', () => { showFleet(); run(); byId('cluster').focus({preventScroll: true}); });
document.addEventListener('visibilitychange', () => { if (!document.hidden) run(); });
run();
