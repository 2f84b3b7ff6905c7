// Package chart renders Heliostat's Helm chart with Helm's own engine, and generates the files in deploy that come from
// it: plain manifests and the table of values. Its tests check the chart against real API servers: which manifests they
// accept, which rights Heliostat has there, and which requests it sends. The package must not accept values that the
// chart does not document.
package chart
