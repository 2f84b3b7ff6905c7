// Package access tests authentication and authorization of the REST API against a real API server. It covers real
// ServiceAccount tokens, Roles, certificate renewal and an API server that is down. Schemathesis
// then calls every operation with valid and invalid input. It must not use a fake API server.
package access
