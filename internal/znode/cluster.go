package znode

// ClusterIDPath holds the cluster's id; the first broker creates it.
const ClusterIDPath = "/cluster/id"

// EncodeClusterID writes version 1, which for once is a string. id is 22
// characters of base64url.
func EncodeClusterID(id string) []byte {
	dst := appendString([]byte(`{"version":"1","id":`), id)
	return append(dst, '}')
}

// DecodeClusterID reads the id, as opaque text.
func DecodeClusterID(data []byte) (string, error) {
	p := parse("cluster id", data)
	var id string
	for key := range p.fields() {
		if string(key) == "id" {
			id = p.string()
		} else {
			p.skip()
		}
	}
	p.require(id != "", "id")
	if p.err != nil {
		return "", p.err
	}
	return id, nil
}
