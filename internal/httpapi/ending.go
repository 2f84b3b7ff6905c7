package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// FinishWithin is how long calls under way may take once Shutdown of the server has begun. What is not answered by then is answered 503, so who calls
// Shutdown waits a moment longer.
const FinishWithin = 2 * time.Second

// errEnding is why a call is given up when the server ends.
var errEnding = &problem{kind: unavailable, detail: "this process ends before it could answer; what was asked may still have happened"}

// endCalls gives up the calls that are still under way FinishWithin after the end of a server began.
func endCalls(running *http.Server) {
	ctx, giveUp := context.WithCancelCause(context.Background())
	running.BaseContext = func(net.Listener) context.Context { return ctx }
	running.RegisterOnShutdown(func() { time.AfterFunc(FinishWithin, func() { giveUp(errEnding) }) })
}

// ending reports whether a call was given up because the server ends.
func ending(c *gin.Context) bool {
	return errors.Is(context.Cause(c.Request.Context()), errEnding)
}

// leftOpen reports whether a problem leaves open what would have been answered.
func (p *problem) leftOpen() bool {
	switch p.kind {
	case internalError, unavailable, timedOut, slowBody:
		return true
	}
	return false
}
