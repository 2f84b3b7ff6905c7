// The timeline of decisions, the requests, and the comparison with another autoscaler.

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

// shadowView compares Heliostat with another autoscaler; null if there is no comparison.
function shadowView(shadow) {
  if (!shadow || !shadow.groups.length) return null;
  const groups = shadow.groups.map(g => [g.name, String(g.ours), String(g.theirs),
    g.ours === g.theirs ? tag('same', 'good') : tag('differs', 'warning'), element('span', {}, tag(g.reason.code), g.reason.message)]);
  const differences = shadow.differences.slice(0, shownDecisions).map(d => [clock(d.at), d.group, String(d.ours), String(d.theirs),
    element('span', {}, d.until ? `after ${duration((new Date(d.until) - new Date(d.at)) / 1000)}${d.agreed === undefined ? '' : `, both at ${d.agreed}`}` : 'still differs', element('span', {class: 'quiet', text: ' ' + d.reason.message})) ]);
  return section('Comparison with another autoscaler', null,
    element('dl', {class: 'facts-list'},
      fact('Other writer', shadow.writer || 'unknown'),
      fact('Same', shadow.agreement === undefined ? '–' : `${(100 * shadow.agreement).toFixed(1)} %`, `of ${duration(shadow.comparedSeconds)}`)),
    table('Desired pods, ours and theirs', [{title: 'Group'}, {title: 'Ours', class: 'number'}, {title: 'Theirs', class: 'number'}, {title: 'Agreement'}, {title: 'Our reason'}], groups),
    differences.length ? table('Differences, newest first', [{title: 'Time', class: 'time'}, {title: 'Group'}, {title: 'Ours', class: 'number'},
      {title: 'Theirs', class: 'number'}, {title: 'How it ended'}], differences) : nothing('No difference yet.'));
}
