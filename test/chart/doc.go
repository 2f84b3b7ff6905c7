// Package chart renders Heliostat's Helm chart with Helm's own engine, and makes from it what deploy has beside it:
// plain manifests and the table of values. Its tests hold the chart to real API servers: what they take, what Heliostat
// may do there and what it asks for. It refuses to know values that the chart does not document.
package chart
