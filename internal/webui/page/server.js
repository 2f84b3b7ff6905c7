// The server is asked with the token that a person gave. It is kept in this variable only: a reload forgets it.
let token = '';

const patienceMilliseconds = 10000; // a call that takes longer counts as failed

const clusterPath = (namespace, name) => `/v1/namespaces/${encodeURIComponent(namespace)}/rayclusters/${encodeURIComponent(name)}`;

function headers(accept) {
  return token ? {Accept: accept, Authorization: `Bearer ${token}`} : {Accept: accept};
}

// read asks for JSON. Its errors have the status, or none where the server did not answer.
async function read(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(patienceMilliseconds), headers: headers('application/json')});
  const body = await answer.json().catch(() => ({})); // not JSON, a proxy's page: the status says enough
  if (!answer.ok) throw Object.assign(new Error(body.detail || `the server answered ${answer.status}`), {status: answer.status});
  return body;
}

// readOr asks for what not every server has: where it is not served or not allowed the answer is what is given.
async function readOr(path, otherwise) {
  try {
    return await read(path);
  } catch (error) {
    if ([403, 404, 405, 501, 503].includes(error.status)) return otherwise;
    throw error;
  }
}

// follow calls hear with every server-sent event until the stream ends; it resolves then. EventSource is of no use: it
// cannot send a token.
async function follow(path, signal, hear) {
  const answer = await fetch(path, {signal, headers: headers('text/event-stream')});
  if (!answer.ok) throw Object.assign(new Error(`the server answered ${answer.status}`), {status: answer.status});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let buffer = '';;) {
    const {done, value} = await reader.read();
    if (done) return;
    buffer += value;
    const events = buffer.split(/\r?\n\r?\n/);
    buffer = events.pop();
    for (const event of events) hearEvent(event, hear);
  }
}

// hearEvent reads the lines of one event; a comment keeps the line alive and tells nothing.
function hearEvent(text, hear) {
  let kind = 'message';
  const data = [];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('event:')) kind = line.slice(6).trim();
    if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
  }
  if (!data.length) return;
  try {
    hear(kind, JSON.parse(data.join('\n')));
  } catch { /* an event that is not JSON tells nothing */ }
}

// jsonLink leads to an answer of the API. A link carries no token, so with one it is fetched and offered as a file.
function jsonLink(path, text, file = 'heliostat.json') {
  const link = element('a', {href: path, text, 'data-key': path});
  link.addEventListener('click', async event => {
    if (!token) return;
    event.preventDefault();
    const body = JSON.stringify(await read(path), null, 2);
    const address = URL.createObjectURL(new Blob([body], {type: 'application/json'}));
    const download = element('a', {href: address, download: file});
    download.click();
    URL.revokeObjectURL(address);
  });
  return link;
}
