// What is shown is read again when the server says that something changed, and now and then for the ages. While the server
// does not stream, it is asked every second.

const restMilliseconds = 10000, pollMilliseconds = 1000, gatherMilliseconds = 250;

let streaming = false; // the server tells of changes
let due = 0, reading = false, again = false;

function showLink(up, text) {
  const link = byId('link');
  link.className = up ? 'up' : 'down';
  if (link.textContent !== text) link.textContent = text; // a change only, for it is read aloud
}

function showSignIn(shown) {
  byId('sign-in').hidden = !shown;
  byId('columns').hidden = byId('skip').hidden = shown;
}

// signIn asks for a token; the page shows nothing else until there is one that the server takes.
function signIn(wrong) {
  showSignIn(true);
  byId('sign-in-error').textContent = wrong;
  showLink(false, 'Sign in to see the fleet.');
}

async function readCluster(pick) {
  const path = clusterPath(pick.namespace, pick.name);
  const [cluster, series, history, requests, shadow] = await Promise.all([read(path), readOr(path + '/series', {points: []}),
    readOr(path + '/history', {items: []}), readOr(path + '/requests', {items: []}), readOr(path + '/shadow', null)]);
  return [topView(cluster), unmetView(cluster), series.points.length ? chartView(series.points, Date.now()) : null, groupsView(cluster),
    requestsView(requests), demandView(cluster), shadowView(shadow), findingsView(cluster), decisionsView(cluster, history)].filter(part => part !== null);
}

// readChosen reads what the address names. Where the server refuses, it says why in the place of what was asked for.
async function readChosen(pick) {
  try {
    return pick ? await readCluster(pick) : nodepoolsView(await read('/v1/nodepools'));
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    return [element('div', {class: 'top'}, element('h2', {text: pick ? pick.name : 'GPU nodes'}), element('p', {class: 'banner', text: error.message}))];
  }
}

async function readAll() {
  fleetRead((await read('/v1/rayclusters')).items || []);
  let pick = chosen();
  if (!pick && location.hash !== nodesHash && fleet.length) {
    pick = fleet[0];
    history.replaceState(null, '', hashOf(pick));
  }
  showSignIn(false);
  showFleet();
  const asked = location.hash;
  const parts = pick || asked === nodesHash ? await readChosen(pick) : [];
  if (location.hash !== asked) return; // somebody went on meanwhile
  document.title = pick ? `${pick.name} · Heliostat` : 'Heliostat';
  show(byId('cluster'), parts);
}

// run reads once: one reading at a time, and a hidden page asks nothing.
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
      if (signedOut) signIn(token ? 'The server does not take this token: ' + error.message : '');
      else showLink(false, error.status ? error.message : 'No answer from Heliostat. What you see may be old; trying again.');
    }
  }
  reading = false;
  if (!signedOut) due = setTimeout(run, again ? gatherMilliseconds : streaming ? restMilliseconds : pollMilliseconds);
}

// soon reads shortly: many events become one reading.
function soon() {
  if (reading) {
    again = true;
    return;
  }
  clearTimeout(due);
  due = setTimeout(run, gatherMilliseconds);
}

// heard takes an event in: a line of the list is shown with the next frame, anything else is a reason to read.
let frame = 0;
function heard(kind, data) {
  const pick = chosen();
  const mine = pick && data.namespace === pick.namespace && data.name === pick.name;
  const known = kind === 'status' && fleetHeard(data);
  if (known && !frame) frame = requestAnimationFrame(() => { frame = 0; showFleet(); });
  if (mine || kind === 'gone' || (kind === 'status' && !known)) soon();
}

// listen follows the fleet for as long as the page is seen. Without a stream the page polls and tries again.
let line = null;
async function listen() {
  if (line || document.hidden || !byId('sign-in').hidden) return;
  line = new AbortController();
  try {
    const stream = follow('/v1/events', line.signal, heard);
    streaming = true;
    await stream;
  } catch { /* the reading that follows says what is wrong */ }
  streaming = false;
  line = null;
  setTimeout(listen, 5 * pollMilliseconds);
}

byId('sign-in').addEventListener('submit', event => {
  event.preventDefault();
  token = byId('token').value.trim();
  byId('token').value = '';
  byId('sign-in').hidden = true;
  run().then(listen);
});
// The skip link moves the focus only: the address after # names the chosen cluster.
byId('skip').addEventListener('click', event => { event.preventDefault(); byId('cluster').focus(); });
byId('filter').addEventListener('input', showFleet);
byId('cluster').addEventListener('click', event => {
  const resource = event.target.getAttribute('data-chart');
  if (resource) { charted = resource; run(); }
});
addEventListener('hashchange', () => { showFleet(); run(); byId('cluster').focus({preventScroll: true}); });
document.addEventListener('visibilitychange', () => {
  if (document.hidden) line?.abort(); else run().then(listen);
});
run().then(listen);
