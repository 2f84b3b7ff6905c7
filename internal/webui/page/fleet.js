// The list of clusters. The links survive each refresh, so that the keyboard focus and the scroll position stay.
let fleet = [];
let indexes = new Map(); // the index of each cluster in the list
const links = new Map();

const hashOf = cluster => `#${encodeURIComponent(cluster.namespace)}/${encodeURIComponent(cluster.name)}`;
const nodesHash = '#nodes';

// chosen returns the cluster in the address, #namespace/name, which links can use and which survives a reload.
function chosen() {
  const [namespace, name] = location.hash.slice(1).split('/').map(part => { try { return decodeURIComponent(part); } catch { return ''; } });
  return namespace && name ? {namespace, name} : null;
}

function fleetLink(cluster) {
  const id = hashOf(cluster);
  let entry = links.get(id);
  if (!entry) {
    const link = element('a', {href: id}, element('span', {class: 'name'}), element('span', {class: 'facts'}));
    entry = {item: element('li', {}, link), link, shown: ''};
    links.set(id, entry);
  }
  const shown = JSON.stringify([cluster.mode, cluster.workers, cluster.unmet, cluster.waiting, cluster.findings, cluster.error !== '', cluster.frozen, cluster.waitingInShadow]);
  if (shown !== entry.shown) {
    entry.shown = shown;
    describe(entry.link, cluster);
  }
  return {id, ...entry};
}

function describe(link, cluster) {
  const {current, desired} = cluster.workers;
  const facts = [cluster.frozen ? 'frozen' : cluster.mode, desired === current ? plural(current, 'worker') : `${current} → ${plural(desired, 'worker')}`];
  if (cluster.waiting) facts.push(`${cluster.waiting} waiting`);
  const alarms = [];
  if (cluster.unmet) alarms.push(`${cluster.unmet} not served`);
  if (cluster.waitingInShadow) alarms.push('demand waits in shadow');
  if (cluster.findings) alarms.push(plural(cluster.findings, 'finding'));
  if (cluster.error) alarms.push('error');
  link.firstChild.replaceChildren(element('span', {class: 'quiet', text: cluster.namespace + '/'}), cluster.name);
  link.lastChild.replaceChildren(facts.join(' · ') + (alarms.length ? ' · ' : ''), element('span', {class: 'alarm', text: alarms.join(', ')}));
}

function showFleet() {
  const words = byId('filter').value.trim().toLowerCase();
  const matching = fleet.filter(c => `${c.namespace}/${c.name}`.toLowerCase().includes(words));
  const pick = chosen(), current = pick && hashOf(pick);
  const entries = matching.map(fleetLink);
  for (const {id, link} of entries) {
    if (id === current) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  const nodes = byId('nodes-link');
  if (location.hash === nodesHash) nodes.setAttribute('aria-current', 'page'); else nodes.removeAttribute('aria-current');
  const list = byId('fleet'), items = entries.map(e => e.item);
  if (items.length !== list.children.length || items.some((item, i) => item !== list.children[i])) list.replaceChildren(...items);
  byId('fleet-count').textContent = words ? `${matching.length} of ${fleet.length}` : String(fleet.length);
  byId('filter-label').hidden = fleet.length < 8 && !words;
  const empty = byId('fleet-empty');
  empty.hidden = matching.length > 0;
  empty.textContent = fleet.length ? 'No cluster matches.' : 'There are no RayClusters. Create one, or check that Heliostat watches its namespace.';
  const known = new Set(fleet.map(hashOf));
  for (const id of links.keys()) if (!known.has(id)) links.delete(id);
}

// updateCluster replaces the summary of one cluster. It returns false for an unknown one.
function updateCluster(summary) {
  const at = indexes.get(hashOf(summary));
  if (at === undefined) return false;
  fleet[at] = summary;
  return true;
}

// setFleet replaces the whole list.
function setFleet(list) {
  fleet = list;
  indexes = new Map(list.map((cluster, at) => [hashOf(cluster), at]));
}
