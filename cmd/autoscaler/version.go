package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Prints the version, the revision and the Go release it was built with", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				return fmt.Errorf("reading build information: the binary carries none")
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(info))
			return err
		},
	}
}

// versionLine writes "heliostat VERSION, revision REVISION (modified), go RELEASE"; what is unknown is left out.
func versionLine(info *debug.BuildInfo) string {
	line := "heliostat"
	if info.Main.Version != "" {
		line += " " + info.Main.Version
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		line += ", revision " + revision
	}
	if settings["vcs.modified"] == "true" {
		line += " (modified)"
	}
	return line + ", " + info.GoVersion
}

// version is the program's version, or "(devel)" where it is not known.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
