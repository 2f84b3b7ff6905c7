// One cluster: its demand, its current and desired size, and why.

const kinds = {request: 'tasks and actors', gang: 'placement group', requestResources: 'request_resources'};

// outcomeText describes the outcome of a demand: all counts that are not zero. Nothing is launched if Heliostat does
// not scale the RayCluster.
function outcomeText(d, scaled) {
  const parts = [[d.served, 'on running nodes'], [d.waiting, 'waiting for starting pods' + (d.waitingSince ? ' since ' + hours(d.waitingSince) : '')],
    [d.launching, scaled ? 'on pods that are launched now' : 'on pods that Heliostat would launch'], [d.coolingDown, 'waiting for a group to cool down'], [d.trying, 'waiting for a pod that is tried'], [d.poolPromised, 'waiting for nodes that are promised to other RayClusters'],
    [d.capped, 'capped'], [d.closed, 'closed'],
    [d.impossible, 'impossible']];
  return parts.filter(([n]) => n).map(([n, text]) => `${n} ${text}`).join(', ');
}

const shapeOf = d => code((d.gang ? gang(d.gang) : bundle(d.resources)) + (d.slice ? ' ' + sliceText(d.slice) : ''));

// sliceText describes what each GPU must offer.
function sliceText(slice) {
  const parts = [];
  if (slice.memory !== undefined) parts.push(`${typeof slice.memory === 'number' ? amount('memory', slice.memory) : 'memory ' + slice.memory}`);
  if (slice.computeFraction) parts.push(`${slice.computeFraction} of a card’s compute`);
  if (slice.isolation) parts.push('isolation ' + slice.isolation);
  return parts.length ? `with ${parts.join(', ')} each` : '';
}

// demandRows lists all demand with its outcome, which is empty before the first decision.
function demandRows(cluster) {
  if (!cluster.summary.length) return requestedRows(cluster).map(row => [...row, '']);
  return cluster.summary.map(d => [d.moving ? 'work on nodes that go' : d.overREST ? 'requests over REST' : kinds[d.kind] || d.kind, shapeOf(d), String(d.asked), selectors(d.labelSelectors), outcomeText(d, cluster.mode === 'managed')]);
}

function requestedRows(cluster) {
  const shape = (what, request) => [what, shapeOf(request), String(request.count), selectors(request.labelSelectors)];
  return [
    ...cluster.demand.requests.map(r => shape('tasks and actors', r)),
    ...cluster.demand.gangs.map(g => ['placement group', code(gang(g)), '1', '']),
    ...cluster.demand.requestResources.map(r => shape('request_resources (Ray)', r)),
    ...cluster.requested.map(r => shape('request_resources (REST)', r)),
  ];
}

function unmetRows(cluster) {
  return cluster.unmet.map(u => [u.moving ? 'work on nodes that go' : u.askedBy || u.overREST && 'requests over REST' || kinds[u.kind] || u.kind, shapeOf(u), String(u.count),
    element('span', {}, tag(u.reason.code, 'bad'), u.reason.message)]);
}

function findingView(f) {
  const where = [f.object, f.field].filter(Boolean).join(' ');
  return element('li', {class: 'finding'}, tag(f.severity, f.severity), tag(f.code), code(where + (f.seen ? ': ' + f.seen : '')),
    element('div', {text: f.why || ''}), f.fix ? element('div', {}, element('strong', {text: 'Fix: '}), f.fix) : null);
}

function topView(cluster) {
  const path = clusterPath(cluster.namespace, cluster.name);
  const age = cluster.dataAgeSeconds;
  const total = what => cluster.groups.reduce((sum, group) => sum + group[what], 0);
  return element('div', {class: 'top'},
    element('h2', {text: cluster.name}),
    element('p', {class: 'where'}, `namespace ${cluster.namespace} · `, jsonLink(path, 'JSON', `${cluster.name}.json`), ' · ',
      jsonLink(path + '/snapshot', 'snapshot', `${cluster.name}-snapshot.json`)),
    element('dl', {class: 'facts-list'},
      fact('Mode', cluster.frozen ? 'frozen' : cluster.mode, cluster.modeReason),
      fact('Workers', `${total('current')}${total('desired') === total('current') ? '' : ' → ' + total('desired')}`, `${total('ready')} ready`),
      fact('Last decision', cluster.lastCycle ? clock(cluster.lastCycle) : 'none yet', cluster.lastCycle ? `took ${(cluster.cycleSeconds * 1000).toFixed(1)} ms` : ''),
      fact('Ray state', age === null ? 'never read' : duration(age) + ' old'),
      cluster.shard ? fact('Shard', cluster.shard) : null),
    cluster.frozen ? element('p', {class: 'banner warning', text: 'Frozen: Heliostat writes nothing until you remove the annotation heliostat.dev/freeze.'}) : null,
    cluster.optIn && cluster.optIn.waiting ? element('p', {class: 'banner warning', text: `In shadow, ${cluster.optIn.waiting}; ${cluster.optIn.allow}`}) : null,
    cluster.paused ? element('p', {class: 'banner warning', text: 'Scale-down is paused: ' + cluster.paused}) : null,
    cluster.error ? element('p', {class: 'banner', text: cluster.error}) : null);
}

function unmetView(cluster) {
  const rows = unmetRows(cluster);
  return rows.length ? section('Unserved demand', rows.length, table('Unserved demand',
    [{title: 'What'}, {title: 'Shape'}, {title: 'Count', class: 'number'}, {title: 'Reason'}], rows)) : null;
}

function groupsView(cluster) {
  return section('Worker groups', cluster.groups.length,
    ...(cluster.groups.length ? [keyOf(barKey), ...cluster.groups.map(groupView)] : [nothing('No worker groups.')]));
}

// departuresView lists the workers whose machine is about to go or whose GPU is bad.
function departuresView(cluster) {
  const rows = (cluster.departures || []).map(d => [code(d.pod), d.group,
    d.leaving ? tag('leaving', 'warning') : tag(d.certain ? 'goes' : 'warning'), d.deadline ? clock(d.deadline) : 'unknown',
    element('span', {}, tag(d.sign), d.message)]);
  return rows.length ? section('Workers that leave or have a bad GPU', rows.length, table('Workers that leave or have a bad GPU',
    [{title: 'Worker'}, {title: 'Group'}, {title: 'State'}, {title: 'Until'}, {title: 'Why'}], rows)) : null;
}

// arrivalsView lists the starting workers, and how far they have come.
function arrivalsView(cluster) {
  const rows = (cluster.arrivals || []).map(a => [code(a.pod), a.group, tag(a.stage), a.since ? clock(a.since) : 'unknown',
    a.message || '']);
  return rows.length ? section('Starting workers', rows.length, table('Starting workers',
    [{title: 'Worker'}, {title: 'Group'}, {title: 'Stage'}, {title: 'Since'}, {title: 'Message'}], rows)) : null;
}

// policyView shows the capacity policy: what is free, what becomes of each entry, and what happens without work.
function policyView(cluster) {
  const p = cluster.capacityPolicy;
  if (!p) return null;
  const rows = p.warm.map(w => [code(w.name), w.group || code(bundle(w.resources)), String(w.count), String(w.ready),
    element('span', {}, tag(w.reason.code), w.reason.message)]).concat((p.warmNodes || []).map(n => [code(n.name), 'nodes for ' + n.group,
    String(n.count), '', element('span', {}, tag(n.code), n.message)]));
  const lines = [p.source, p.fault && 'It cannot be read: ' + p.fault, p.idle && 'Without work: ' + p.idle];
  return section('Capacity policy', rows.length || null, ...lines.filter(Boolean).map(text => element('p', {text})),
    rows.length ? table('Warm capacity', [{title: 'Entry'}, {title: 'What'}, {title: 'Wanted', class: 'number'}, {title: 'Free', class: 'number'}, {title: 'Reason'}], rows) : null);
}

function demandView(cluster) {
  const rows = demandRows(cluster);
  return section('Demand', rows.length || null, rows.length ? table('Demand',
    [{title: 'What'}, {title: 'Shape'}, {title: 'Count', class: 'number'}, {title: 'Labels'}, {title: 'Outcome'}], rows) : nothing('There is no demand.'));
}

function findingsView(cluster) {
  return cluster.findings.length ? section('Findings', cluster.findings.length, element('ul', {}, ...cluster.findings.map(findingView))) : null;
}
