// The chart shows one resource over time: capacity as an area, use as a darker area, use plus waiting demand as a line,
// and desired capacity as a dashed line. A value lasts until the next point, so lines are steps.
const chartWidth = 720, chartHeight = 180, chartLeft = 44, chartBottom = 22, chartTop = 10;

// charted is the resource that the user chose, for all clusters.
let charted = 'GPU';

// topOf returns the top of the scale: the next round number above the highest value.
function topOf(highest) {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 1)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(step => step * power).find(top => top >= highest);
}

// stepsOf returns the corners of a step line for values, from left to right.
function stepsOf(times, values, x, y, end) {
  return times.flatMap((time, i) => {
    const until = i + 1 < times.length ? times[i + 1] : end;
    return [[x(time), y(values[i])], [x(until), y(values[i])]];
  });
}

function chartView(points, now) {
  const resources = ['GPU', 'CPU'].filter(name => points.some(p => ['capacity', 'desired', 'waiting'].some(what => p[what][name] > 0)));
  if (!resources.length) return section('Demand against capacity', null, nothing('There was no GPU or CPU, and no demand for one, in the last two hours.'));
  const name = resources.includes(charted) ? charted : resources[0];
  const choice = resources.length < 2 ? null : element('p', {class: 'choice', role: 'group', 'aria-label': 'Resource of the chart'},
    ...resources.map(resource => element('button', {type: 'button', 'data-chart': resource, 'data-key': 'chart-' + resource,
      'aria-pressed': String(resource === name), text: resource})));
  return section('Demand against capacity', null, choice, keyOf(chartKeys), chart(name, points, now), latestView(name, points.at(-1)));
}

const chartKeys = [['has', 'capacity'], ['used', 'used'], ['asked', 'demand'], ['wanted-line', 'desired']];

function latestView(name, point) {
  const of = what => point[what][name];
  return element('p', {class: 'note', text: `${name} now: capacity ${of('capacity')}, used ${of('used')}, waiting demand ${of('waiting')}, desired ${of('desired')}.`});
}

function chart(name, points, now) {
  const times = points.map(point => Date.parse(point.at)), end = Math.max(now, times.at(-1)), begin = Math.min(times[0], end - 60000);
  const values = what => points.map(point => point[what][name]);
  const asked = points.map(point => point.used[name] + point.waiting[name]);
  const highest = Math.max(...values('capacity'), ...values('desired'), ...asked), top = topOf(highest);
  const x = time => Math.round(10 * (chartLeft + (chartWidth - chartLeft) * (time - begin) / (end - begin))) / 10;
  const y = value => Math.round(10 * (chartTop + (chartHeight - chartTop - chartBottom) * (1 - value / top))) / 10;
  const line = (kind, list) => drawing('polyline', {class: kind, points: stepsOf(times, list, x, y, end).join(' ')});
  const area = (kind, list) => drawing('polygon', {class: kind,
    points: [[x(times[0]), y(0)], ...stepsOf(times, list, x, y, end), [x(end), y(0)]].join(' ')});
  const label = `${name} during the last ${duration((end - begin) / 1000)}: demand at most ${Math.max(...asked)}, capacity at most ${Math.max(...values('capacity'))}`;
  return drawing('svg', {class: 'chart', viewBox: `0 0 ${chartWidth} ${chartHeight}`, role: 'img', 'aria-label': label},
    ...[0, top / 2, top].flatMap(value => [
      drawing('line', {class: 'grid', x1: chartLeft, x2: chartWidth, y1: y(value), y2: y(value)}),
      drawing('text', {x: chartLeft - 6, y: y(value) + 4, 'text-anchor': 'end', text: String(value)})]),
    drawing('text', {x: chartLeft, y: chartHeight - 6, text: hours(begin)}),
    drawing('text', {x: chartWidth, y: chartHeight - 6, 'text-anchor': 'end', text: hours(end)}),
    area('has', values('capacity')), area('used', values('used')), line('wanted-line', values('desired')), line('asked', asked));
}
