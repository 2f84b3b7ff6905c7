// Package api serves the REST API: what Heliostat observes and decides, and requests for capacity. Routes are generated
// from api/openapi.yaml; apiv1 has the types and the Go client. The server decides nothing about scaling: it
// shows the last decision and stores requests. It must not import its client, the controller or Kubernetes; cmd
// connects them.
//
// Its words: the guard checks every call before its handler runs; an operation is a method and a path of the contract,
// with the right that a caller needs; a problem is an error with its kind, and the answer to a call that fails; a view
// is the last decision about one RayCluster; a stream sends each one as an event; the relay passes calls on to the
// replica that leads, or to those that share the RayClusters.
package api

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config ../../api/oapi-codegen.yaml ../../api/openapi.yaml
