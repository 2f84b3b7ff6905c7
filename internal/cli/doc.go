// Package cli holds what all subcommands share: flags whose values are checked, settings from the environment, errors
// that name the valid values, output formats and exit codes. It finds servers as kubectl does, by flags and the
// kubeconfig, with the tokens that a command sends, and the RayCluster that an argument names. It must not do what a
// subcommand does: it decides no request and writes no answer. Package printer below it writes answers as text.
package cli
