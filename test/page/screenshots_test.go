package page

import (
	"bytes"
	"cmp"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "folder that gets the picture of the documentation (default: one that is removed)")

func TestTheScreenshotShowsThePageOfTheDocumentation(t *testing.T) {
	folder, size := cmp.Or(*screenshots, t.TempDir()), screen{width: 1280, height: 1024}
	b := open(t, size, newServer(t, newBusyFleet(), withNodes, nil).URL+"/#ml/llm")
	b.shows("Decisions")
	var picture []byte
	b.do(chromedp.CaptureScreenshot(&picture))
	config, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil || int64(config.Width) != size.width || int64(config.Height) != size.height {
		t.Errorf("the picture is %d × %d (%v), want %d × %d", config.Width, config.Height, err, size.width, size.height)
	}
	if err := os.WriteFile(filepath.Join(folder, "page.png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
	b.unharmed()
}
