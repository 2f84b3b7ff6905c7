package httpapi

import (
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// Release is the version that is released next, or was last: the appVersion of the Helm chart, and the tag of the image that it installs. Which
// build of it a program is, its revision tells.
const Release = "0.1.0"

// ThisBuild is what this program says of its own build.
func ThisBuild() apiv1.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok { // a program of another toolchain than Go's own
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) apiv1.Build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return apiv1.Build{
		Version: Release, Revision: settings["vcs.revision"], Modified: settings["vcs.modified"] == "true",
		RevisionTime: settings["vcs.time"], Go: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// GetVersion serves GET /version.
func (s *server) GetVersion(c *gin.Context) { write(c, http.StatusOK, "application/json", ThisBuild()) }
