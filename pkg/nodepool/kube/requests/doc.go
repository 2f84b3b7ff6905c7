// Package requests keeps ResourceRequests: Store watches them, Calls is what users do with them, and Writer writes what
// becomes of them while this process leads.
//
// The package must not decide which requests are satisfied, nor read RayClusters or nodes: it knows the kind
// ResourceRequest of heliostat.dev alone.
package requests
