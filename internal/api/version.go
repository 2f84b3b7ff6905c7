package api

import (
	"runtime"
	"runtime/debug"
)

// Release is the last released version, or the next one: the appVersion of the Helm chart and the tag of its image. The
// revision says which build a program is.
const Release = "0.1.0"

// Build describes a program; values that the build did not record are empty.
type Build struct {
	Version      string `json:"version,omitempty"`
	Revision     string `json:"revision,omitempty"`
	Modified     bool   `json:"modified"`
	RevisionTime string `json:"revisionTime,omitempty"`
	Go           string `json:"go"`
	Platform     string `json:"platform"`
}

// ThisBuild describes this program.
func ThisBuild() Build {
	build := Build{Version: Release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, _ := debug.ReadBuildInfo()
	if info == nil { // the program was not built with Go modules
		return build
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			build.Revision = s.Value
		case "vcs.modified":
			build.Modified = s.Value == "true"
		case "vcs.time":
			build.RevisionTime = s.Value
		}
	}
	return build
}

// String returns "heliostat VERSION, revision REVISION (modified), go RELEASE".
func (b Build) String() string {
	line := "heliostat " + b.Version
	if b.Revision != "" {
		line += ", revision " + b.Revision
	}
	if b.Modified {
		line += " (modified)"
	}
	return line + ", " + b.Go
}
