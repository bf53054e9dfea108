package peer

import (
	"context"
	"fmt"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions is what a broker serves, as its ApiVersions told.
type Versions struct {
	ranges map[int16][2]int16
	kin    byte
}

// Kin is the wire.KinLevel that the broker told; 0: it is none of ours.
func (v *Versions) Kin() byte { return v.kin }

// Best returns the newest version of an API that the broker serves and that is
// not above most; ErrVersion if there is none.
func (v *Versions) Best(key, most int16) (int16, error) {
	served, ok := v.ranges[key]
	if !ok || served[0] > most {
		return 0, fmt.Errorf("%w: %s up to version %d", ErrVersion, kmsg.NameForKey(key), most)
	}
	return min(most, served[1]), nil
}

// Serves tells whether the broker serves any version of an API.
func (v *Versions) Serves(key int16) bool {
	_, ok := v.ranges[key]
	return ok
}

// negotiate asks for the broker's versions: in version 3, and in version 0 if
// the broker is older than that (it then answers so in version 0, KIP-511).
func (c *Conn) negotiate(ctx context.Context) error {
	for _, version := range []int16{3, 0} {
		request := kmsg.NewPtrApiVersionsRequest()
		request.SetVersion(version)
		request.ClientSoftwareName, request.ClientSoftwareVersion = wire.KinName, "dev"
		body, err := c.ask(ctx, wire.Header{Key: request.Key(), Version: version, Flexible: request.IsFlexible()}, request.AppendTo)
		if err != nil {
			return err
		}
		response := kmsg.NewPtrApiVersionsResponse()
		if len(body) >= 2 && int16(uint16(body[0])<<8|uint16(body[1])) == int16(wire.UnsupportedVersion) {
			version = 0
		}
		response.SetVersion(version)
		if err := response.ReadFrom(body); err != nil {
			return fmt.Errorf("%w: ApiVersions: %w", ErrBadAnswer, err)
		}
		switch code := wire.Code(response.ErrorCode); code {
		case wire.None:
			v := &Versions{ranges: make(map[int16][2]int16, len(response.ApiKeys))}
			for _, k := range response.ApiKeys {
				v.ranges[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
			}
			response.UnknownTags.Each(func(tag uint32, value []byte) {
				if tag == wire.KinTag && len(value) > 0 {
					v.kin = value[0]
				}
			})
			c.versions = v
			return nil
		case wire.UnsupportedVersion:
		default:
			return fmt.Errorf("ApiVersions: %w", code)
		}
	}
	return fmt.Errorf("%w: ApiVersions", ErrVersion)
}
