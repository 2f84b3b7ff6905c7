const plural = (n, one, many = one + 's') => `${n} ${n === 1 ? one : many}`;

// amount formats an amount in Ray's units: memory is in bytes, other resources are plain numbers.
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

const hours = text => new Date(text).toLocaleTimeString([], {hourCycle: 'h23'});
const clock = text => element('time', {datetime: text, title: text, text: hours(text)});
