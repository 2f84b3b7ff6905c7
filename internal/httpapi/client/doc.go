// Package client is the Go client of the REST API: one method for each operation, retries while the server restarts,
// and events as a callback. It must not import the server (package httpapi): both ends share only the shapes of package
// apiv1, so what the client accepts is what the contract says. How a server is found and who calls it are the caller's:
// it passes an address and an http.Client.
package client
