// Package optin holds Heliostat to what nobody asked of it: installed with its defaults it leaves RayClusters alone,
// and scales one once somebody lets it. It has a control plane of its own, without nodes and operator, and a simulated
// Ray head.
package optin
