package api

import (
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// Release is the last released version, or the next one: the appVersion of the Helm chart and the tag of its image. The
// revision says which build a program is.
const Release = "0.1.0"

// ThisBuild returns the version and the build information of this program.
func ThisBuild() apiv1.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok { // the program was not built with Go modules
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
func (s *server) GetVersion(c *gin.Context) { s.answers.JSON(c, http.StatusOK, ThisBuild()) }
