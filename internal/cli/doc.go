// Package cli holds what all subcommands share: flags whose values are checked, settings from a file and from the
// environment, errors that name the valid values, grouped help, output formats and exit codes. It finds servers as
// kubectl does: by flags and the kubeconfig, with the tokens that a command sends, the RayCluster that an argument
// names, and names to complete or suggest. It must not do what a subcommand does: it decides no request and writes no
// answer. Package printer below it writes answers as text.
package cli
