// Package apiv1 is the REST API's version 1 as Go types: what calls and answers hold, and the kinds of events. Most of
// it is generated from api/openapi.yaml. The server and its client share it. It must not import either of them, an HTTP
// framework or Kubernetes: a type that needs more than its own fields to answer a call belongs to the server.
package apiv1

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config ../../../api/oapi-codegen-types.yaml ../../../api/openapi.yaml
