// Package apiv1 has the Go types of version 1 of the REST API: calls, answers and events. Most of them are generated
// from api/openapi.yaml. The server and its client share them. It must not import either of them, an HTTP framework or
// Kubernetes: a type that needs more than its own fields to answer a call belongs to the server.
package apiv1

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config ../../../api/oapi-codegen-types.yaml ../../../api/openapi.yaml
