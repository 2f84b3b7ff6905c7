package webui

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestThePageKnowsNothingOfTheProgram(t *testing.T) {
	importtest.Only(t)
}
