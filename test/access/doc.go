// Package access tests who may call the REST API, against a real API server: real ServiceAccount tokens, client
// certificates and Roles, certificates that are renewed, an API server that is gone. Schemathesis then calls every
// operation with what the contract allows and with what it does not.
package access
