// The list of clusters. The links survive each refresh, so that the keyboard focus and the scroll position stay.
let fleet = [];
let indexes = new Map(); // the index of each cluster in the list
let divided = false; // whether shards divide the clusters
const links = new Map();
let idleLines = new Map(); // what is idle in each cluster, by its hash

const hashOf = cluster => `#${encodeURIComponent(cluster.namespace)}/${encodeURIComponent(cluster.name)}`;
const nodesHash = '#nodes', costsHash = '#costs';
const elsewhere = () => [nodesHash, costsHash].includes(location.hash);

// While RayClusters move between shards, the server refuses lists. About each cluster it says which shard decides, or
// refuses with this text.
const noShard = 'no shard';
const withoutShard = error => error.status === 503 && error.message.startsWith('no shard decides');

// shardText names the shard that decides about a cluster. It is empty if one process decides about all.
function shardText(cluster, divided) {
  return cluster.shard ? 'shard ' + cluster.shard : divided ? noShard : '';
}

// matches reports whether a cluster has the words in its name or in that of its shard.
function matches(cluster, words) {
  return `${cluster.namespace}/${cluster.name} ${cluster.shard || ''}`.toLowerCase().includes(words);
}

// chosen returns the cluster in the address, #namespace/name, which links can use and which survives a reload.
function chosen() {
  const [namespace, name] = location.hash.slice(1).split('/').map(part => { try { return decodeURIComponent(part); } catch { return ''; } });
  return namespace && name ? {namespace, name} : null;
}

function fleetLink(cluster, shard) {
  const id = hashOf(cluster);
  let entry = links.get(id);
  if (!entry) {
    const link = element('a', {href: id}, element('span', {class: 'name'}), element('span', {class: 'facts'}), element('span', {class: 'facts'}));
    entry = {item: element('li', {}, link), link, shown: ''};
    links.set(id, entry);
  }
  const shown = JSON.stringify([cluster.mode, cluster.workers, cluster.unmet, cluster.waiting, cluster.findings, cluster.error !== '', cluster.frozen, cluster.waitingInShadow, shard, idleLines.get(id)]);
  if (shown !== entry.shown) {
    entry.shown = shown;
    describe(entry.link, cluster, shard, idleLines.get(id));
  }
  return {id, ...entry};
}

function describe(link, cluster, shard, idle) {
  const {current, desired} = cluster.workers;
  const facts = [cluster.frozen ? 'frozen' : cluster.mode, desired === current ? plural(current, 'worker') : `${current} → ${plural(desired, 'worker')}`];
  if (cluster.waiting) facts.push(`${cluster.waiting} waiting`);
  if (shard && shard !== noShard) facts.push(shard);
  const alarms = shard === noShard ? [noShard] : [];
  if (cluster.unmet) alarms.push(`${cluster.unmet} not served`);
  if (cluster.waitingInShadow) alarms.push('demand waits in shadow');
  if (cluster.findings) alarms.push(plural(cluster.findings, 'finding'));
  if (cluster.error) alarms.push('error');
  link.firstChild.replaceChildren(element('span', {class: 'quiet', text: cluster.namespace + '/'}), cluster.name);
  link.lastChild.textContent = idle || '';
  link.children[1].replaceChildren(facts.join(' · ') + (alarms.length ? ' · ' : ''), element('span', {class: 'alarm', text: alarms.join(', ')}));
}

function showFleet() {
  const words = byId('filter').value.trim().toLowerCase();
  const matching = fleet.filter(c => matches(c, words));
  const pick = chosen(), current = pick && hashOf(pick);
  const entries = matching.map(c => fleetLink(c, shardText(c, divided)));
  for (const {id, link} of entries) {
    if (id === current) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  for (const link of [byId('nodes-link'), byId('costs-link')]) {
    if (location.hash === link.getAttribute('href')) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
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

// setFleet replaces the whole list.
function setFleet(list) {
  fleet = list;
  divided = list.some(cluster => cluster.shard);
  indexes = new Map(list.map((cluster, at) => [hashOf(cluster), at]));
}

// setIdle sets the line about what is idle in each cluster. The page of the cluster has the command that helps.
function setIdle(costs) {
  idleLines = new Map(costs.idle.map(idle => [hashOf({namespace: idle.namespace, name: idle.cluster}), idle.message]));
}

// setShard shows what the server said about one cluster: the shard that decides about it, or '' for none.
function setShard(pick, shard) {
  const at = indexes.get(hashOf(pick));
  if (at === undefined || fleet[at].shard === shard) return;
  divided = true;
  fleet[at] = {...fleet[at], shard};
  showFleet();
}
