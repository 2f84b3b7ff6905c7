// The timeline of decisions, and the requests.

// shownDecisions is the length of the timeline; the server has more.
const shownDecisions = 60;

// changesOf lists the changes, newest first, with the ID of each decision that the history has.
function changesOf(cluster, history) {
  const past = history.items.flatMap(item => item.decisions.map(d => ({...d, id: item.id})));
  return (past.length ? past : cluster.decisions).slice(0, shownDecisions);
}

function decisionsView(cluster, history) {
  const path = clusterPath(cluster.namespace, cluster.name);
  const items = changesOf(cluster, history).map(d => {
    const sizes = d.from === d.to ? '' : ` ${d.from} → ${d.to}`;
    const id = d.id;
    return element('li', {class: 'event ' + d.action}, clock(d.at),
      element('div', {}, tag(d.action), element('strong', {text: d.group + sizes + ' '}),
        id === undefined ? null : jsonLink(`${path}/history/${encodeURIComponent(id)}`, 'replay', `${cluster.name}-${id}.json`),
        element('p', {text: d.reason.message}), d.pods.length ? element('p', {class: 'quiet', text: d.pods.join(', ')}) : null));
  });
  return section('Decisions', null, items.length ? element('ol', {class: 'timeline'}, ...items) : nothing('Nothing has changed since Heliostat started.'));
}

const states = {Waiting: '', Satisfied: 'good', Capped: 'warning', Impossible: 'bad', Expired: ''};

// requestsView lists the requests for capacity; null if there are none.
function requestsView(requests) {
  if (!requests.items.length) return null;
  return section('Requests', requests.items.length, table('Requests for capacity',
    [{title: 'ID'}, {title: 'Owner'}, {title: 'Priority', class: 'number'}, {title: 'Bundles'}, {title: 'State'}, {title: 'Reason'}],
    requests.items.map(r => [r.plain ? 'plain' : r.id, r.owner || '–', String(r.priority),
      code(r.bundles.map(b => `${b.count} × ${bundle(b.resources)}${b.slice ? ' ' + sliceText(b.slice) : ''}`).join(', ')),
      element('span', {}, tag(r.state, states[r.state]), r.since ? element('span', {class: 'quiet'}, ' since ', clock(r.since)) : null),
      element('span', {}, r.reason.message,
        r.expiresAt ? element('span', {class: 'quiet'}, ' lease until ', clock(r.expiresAt)) : null)])));
}
