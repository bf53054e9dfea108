package real

import (
	"net"
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
