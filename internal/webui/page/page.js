// The page refreshes when an event reports a change of the chosen cluster, and every 5 seconds. If it shows a cluster
// without an event stream, it refreshes every second.

const refreshMilliseconds = 5000, pollMilliseconds = 1000, gatherMilliseconds = 250, idleMilliseconds = 60000;

let due = 0, reading = false, again = false;

function showLink(up, text) {
  const link = byId('link');
  link.className = up ? 'up' : 'down';
  if (link.textContent !== text) link.textContent = text; // screen readers read each assignment aloud
}

function showSignIn(shown) {
  byId('sign-in').hidden = !shown;
  byId('columns').hidden = byId('skip').hidden = shown;
}

// signIn asks for a token. The page shows nothing else until the server accepts one.
function signIn(wrong) {
  showSignIn(true);
  byId('sign-in-error').textContent = wrong;
  showLink(false, 'Sign in to see the fleet.');
}

async function readCluster(pick) {
  const path = clusterPath(pick.namespace, pick.name);
  const [cluster, history, requests, costs] = await Promise.all([read(path), readOr(path + '/history', {items: []}), readOr(path + '/requests', {items: []}),
    readOr(costsPath + '?by=cause&namespace=' + encodeURIComponent(pick.namespace), noCosts)]);
  if (cluster.shard) setShard(pick, cluster.shard);
  return [topView(cluster), unmetView(cluster), idleOf(costs, pick), groupsView(cluster), departuresView(cluster), arrivalsView(cluster), policyView(cluster),
    requestsView(requests), demandView(cluster), findingsView(cluster), decisionsView(cluster, history)].filter(part => part !== null);
}

// readChosen reads the cluster or page in the address. If the server refuses, it shows the reason instead.
async function readChosen(pick) {
  try {
    if (pick) return await readCluster(pick);
    return location.hash === costsHash ? costsView(await read(costsPath)) : nodepoolsView(await read('/v1/nodepools'));
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    if (pick && withoutShard(error)) setShard(pick, '');
    return [element('div', {class: 'top'}, element('h2', {text: pick ? pick.name : location.hash === costsHash ? 'Costs' : 'GPU nodes'}), element('p', {class: 'banner', text: error.message}))];
  }
}

// readIdle reads what is idle in all clusters, at most once a minute.
let idleReadAt = 0;
async function readIdle() {
  if (Date.now() - idleReadAt < idleMilliseconds) return;
  setIdle(await readOr(costsPath + '?by=cause', noCosts));
  idleReadAt = Date.now();
}

// readAll reads the list and the chosen cluster. If the list is refused because RayClusters move between shards, the last
// list stays, and the chosen cluster is read all the same.
async function readAll() {
  let refused = null;
  try {
    setFleet((await read('/v1/rayclusters')).items || []);
  } catch (error) {
    if (!divided || error.status !== 503) throw error;
    refused = error;
  }
  await readIdle();
  let pick = chosen();
  if (!pick && !elsewhere() && fleet.length) {
    pick = fleet[0];
    history.replaceState(null, '', hashOf(pick));
  }
  showSignIn(false);
  showFleet();
  const asked = location.hash;
  const parts = pick || elsewhere() ? await readChosen(pick) : [];
  if (location.hash !== asked) return; // the user chose something else meanwhile
  document.title = pick ? `${pick.name} · Heliostat` : 'Heliostat';
  show(byId('cluster'), parts);
  if (refused) throw refused;
}

// run refreshes once. Only one refresh runs at a time, and a hidden page does not refresh.
async function run() {
  clearTimeout(due);
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  again = false;
  let signedOut = false;
  if (!document.hidden) {
    try {
      await readAll();
      showLink(true, 'Live');
    } catch (error) {
      signedOut = error.status === 401;
      if (signedOut) signIn(token ? 'The server does not accept this token: ' + error.message : '');
      else showLink(false, error.status ? error.message : 'No answer from Heliostat. The data may be old; retrying.');
    }
  }
  reading = false;
  if (!signedOut) due = setTimeout(run, again ? gatherMilliseconds : stream || elsewhere() ? refreshMilliseconds : pollMilliseconds);
}

// soon refreshes after a short delay, which gathers events.
function soon() {
  if (reading) {
    again = true;
    return;
  }
  clearTimeout(due);
  due = setTimeout(run, gatherMilliseconds);
}

// listen follows the events of the chosen cluster while the page is visible, and reconnects after 5 seconds.
let stream = null; // the address of its cluster, and what ends it
async function listen() {
  const pick = document.hidden || !byId('sign-in').hidden ? null : chosen(), hash = pick && hashOf(pick);
  if (stream && stream.hash === hash) return;
  stream?.ends.abort();
  stream = null;
  if (!pick) return;
  const own = stream = {hash, ends: new AbortController()};
  try {
    await follow(clusterPath(pick.namespace, pick.name) + '/events', own.ends.signal, soon);
  } catch { /* the next refresh shows the error */ }
  if (stream !== own) return;
  stream = null;
  setTimeout(listen, 5 * pollMilliseconds);
}

byId('sign-in').addEventListener('submit', event => {
  event.preventDefault();
  token = byId('token').value.trim();
  byId('token').value = '';
  byId('sign-in').hidden = true;
  run().then(listen);
});
// The skip link only moves the focus, because the address after # is the chosen cluster.
byId('skip').addEventListener('click', event => { event.preventDefault(); byId('cluster').focus(); });
byId('filter').addEventListener('input', showFleet);
addEventListener('hashchange', () => { showFleet(); run().then(listen); byId('cluster').focus({preventScroll: true}); });
document.addEventListener('visibilitychange', () => {
  if (document.hidden) listen(); else run().then(listen);
});
run().then(listen);
