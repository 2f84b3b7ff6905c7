// Package client is the Go client of the REST API: one method for each operation, retries while the server restarts,
// and events as a callback. It must not import the server (package api): both ends share only the types of package
// apiv1, so the client accepts what the contract says. It must not find servers or tokens: callers pass an address and
// an http.Client.
package client
