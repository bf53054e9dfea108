package api

import (
	"context"
	"errors"

	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
)

// Error is a refusal: a code, and the text for the answer's message.
type Error struct {
	Code    wire.Code
	Message string // "" becomes the code's own text where the answer needs one
}

// Error returns the message, or the code's name.
func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return e.Code.String()
}

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }

func refuse(code wire.Code, message string) *Error { return &Error{code, message} }

// refusal turns any error of a handler into what the client is told; nil stays
// nil. What nobody expected is logged here, where it loses its text.
func (b *Broker) refusal(what string, err error) *Error {
	var own *Error
	var controllers *controller.Error
	var code wire.Code
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &controllers):
		return &Error{controllers.Code, controllers.Message}
	case errors.As(err, &code):
		return &Error{code, ""}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, jute.ErrConnectionLoss), errors.Is(err, jute.ErrSessionExpired):
		return &Error{wire.RequestTimedOut, "ZooKeeper did not answer in time."}
	default:
		b.Log.Error(what, "err", err)
		return &Error{wire.UnknownServerError, ""}
	}
}

// text returns s as a nullable string of an answer: "" is null.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// explain is the text of a code where Kafka always sends one.
func explain(c wire.Code) string {
	switch c {
	case wire.None:
		return "NONE"
	case wire.CoordinatorNotAvailable:
		return "The coordinator is not available."
	case wire.InvalidRequest:
		return "The request is not valid: a field has a value that this broker does not know."
	case wire.NotController:
		return "This is not the correct controller for this cluster."
	case wire.UnknownServerError:
		return "The server met an unexpected error; its log says more."
	default:
		return c.String()
	}
}
