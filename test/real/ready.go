package real

import (
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Ready asks the broker at addr for Metadata and tells whether an answer came
// that names a broker. Until then a broker knows nothing of its cluster.
func Ready(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 1
	request.Topics = []kmsg.MetadataRequestTopic{}
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, request, 1)); err != nil {
		return false
	}
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	if err != nil || n < 8 {
		return false
	}
	response := kmsg.NewPtrMetadataResponse()
	response.Version = 1
	return response.ReadFrom(answer[8:n]) == nil && len(response.Brokers) > 0
}

// Answers asks for ApiVersions, which a broker answers to a client that has not
// authenticated too, and tells whether an answer came.
func Answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), 1)); err != nil {
		return false
	}
	n, err := c.Read(make([]byte, 4096))
	return err == nil && n > 8
}

// withAddr puts addr in the place of {addr}, and returns what tells that the
// listener there serves: Metadata, unless it wants authentication.
func withAddr(addr string, properties []string) ([]string, func(addr string) bool) {
	ready := Ready
	out := make([]string, len(properties))
	for i, p := range properties {
		if strings.HasPrefix(p, "listeners=") && strings.Contains(p, "SASL_PLAINTEXT://{addr}") {
			ready = Answers
		}
		out[i] = strings.ReplaceAll(p, "{addr}", addr)
	}
	return out, ready
}
