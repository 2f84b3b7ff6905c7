const byId = id => document.getElementById(id);

// element returns a DOM node. All text from the server goes through textContent, so that no name can become markup.
function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name === 'text') node.textContent = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

const tag = (text, kind = '') => element('span', {class: ('tag ' + kind).trim(), text});
const code = text => element('span', {class: 'code', text});
const nothing = text => element('p', {class: 'note', text});

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

// keyOf returns the legend of a picture. It is hidden from screen readers, which read the label of the picture.
const keyOf = parts => element('p', {class: 'key', 'aria-hidden': 'true'},
  ...parts.map(([kind, text]) => element('span', {}, element('i', {class: kind}), text)));

function fact(title, value, note) {
  return element('div', {}, element('dt', {text: title}), element('dd', {}, value, note ? element('span', {class: 'quiet', text: note}) : ''));
}

// show puts parts into a place. It replaces only those that changed, so that a text selection or a scroll position in the
// others stays. The focus and open details always stay.
function show(place, parts) {
  for (const opened of place.querySelectorAll('details[open][data-key]')) {
    for (const part of parts) part.querySelector(`details[data-key="${CSS.escape(opened.dataset.key)}"]`)?.setAttribute('open', '');
  }
  const focused = place.contains(document.activeElement) && document.activeElement.getAttribute('data-key');
  parts.forEach((part, i) => {
    const old = place.children[i];
    if (!old) place.append(part);
    else if (!old.isEqualNode(part)) old.replaceWith(part);
  });
  while (place.children.length > parts.length) place.lastChild.remove();
  if (focused && !place.contains(document.activeElement)) {
    place.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
  }
}
