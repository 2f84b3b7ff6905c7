// Calls to the server use the token that the user entered. Only this variable has it, so a reload forgets it.
let token = '';

const timeoutMilliseconds = 10000; // of one call

const clusterPath = (namespace, name) => `/v1/namespaces/${encodeURIComponent(namespace)}/rayclusters/${encodeURIComponent(name)}`;

function headers(accept) {
  return token ? {Accept: accept, Authorization: `Bearer ${token}`} : {Accept: accept};
}

// read gets JSON. Its errors have the HTTP status, or none if the server did not answer.
async function read(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(timeoutMilliseconds), headers: headers('application/json')});
  const body = await answer.json().catch(() => ({})); // not JSON but a proxy's page
  if (!answer.ok) throw Object.assign(new Error(body.detail || `the server answered ${answer.status}`), {status: answer.status});
  return body;
}

// readOr gets JSON that not every server has. It returns the alternative if the server does not have or allow it.
async function readOr(path, alternative) {
  try {
    return await read(path);
  } catch (error) {
    if ([403, 404, 405, 501, 503].includes(error.status)) return alternative;
    throw error;
  }
}

// follow calls changed with every server-sent event, and resolves when the stream ends. It does not use EventSource,
// which cannot send a token.
async function follow(path, signal, changed) {
  const answer = await fetch(path, {signal, headers: headers('text/event-stream')});
  if (!answer.ok) throw Object.assign(new Error(`the server answered ${answer.status}`), {status: answer.status});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    if (value.includes('data:')) changed(); // other parts are comments
  }
}

// jsonLink links to an answer of the API. A link cannot send a token, so with a token it downloads the answer as a file.
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
