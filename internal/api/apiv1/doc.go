// Package apiv1 has the Go types of version 1 of the REST API: calls, answers and events; most of them are generated
// from api/openapi.yaml. It also has the Client, with one method for each operation that commands use. The server
// shares only the types, so the client accepts what the contract says. The package must not import the server, an HTTP
// framework or Kubernetes, and must not find servers or tokens: callers pass an address and an http.Client.
package apiv1

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config ../../../api/oapi-codegen-types.yaml ../../../api/openapi.yaml
