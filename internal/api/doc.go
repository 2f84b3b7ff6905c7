// Package api serves the REST API: what Heliostat observes and decides, and requests for capacity. It holds the
// handlers and their backends; routes are generated from api/openapi.yaml. Packages below it check calls, decode
// bodies, write answers, stream events and relay calls to the leader; apiv1 has the types, and client is the Go client.
// The server decides nothing about scaling: it shows the last decision and stores requests. It must not import its
// client, the controller or Kubernetes; cmd connects them.
package api

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config ../../api/oapi-codegen.yaml ../../api/openapi.yaml
