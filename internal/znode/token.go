package znode

const (
	// DelegationTokens is the parent of the tokens (KIP-48).
	DelegationTokens = "/delegation_token/tokens"
	// DelegationTokenChanges is the parent of the notes; the data of a note is
	// the bare token id.
	DelegationTokenChanges = "/delegation_token/token_changes"
	// DelegationTokenChangePrefix begins the name of each note.
	DelegationTokenChangePrefix = "token_change_"
)

// DelegationTokenPath holds one token.
func DelegationTokenPath(id string) string { return DelegationTokens + "/" + id }

// TokenBootPaths returns the persistent nodes that are made at start when
// tokens are on.
func TokenBootPaths() []string { return []string{DelegationTokenChanges, DelegationTokens} }

// DelegationToken is the data of a token node. The HMAC is never stored.
//
// Versions: 1 to 3.2; 3 (3.3, KIP-373) adds tokenRequester. 2.8 refuses any
// version but 1.
type DelegationToken struct {
	Version   int32
	ID        string
	Owner     string // "User:alice"; in the node it is URL-encoded
	Requester string // equals Owner below version 3
	Renewers  []string
	// Times are in ms since 1970, and JSON numbers for once.
	IssueTimestamp, MaxTimestamp, ExpiryTimestamp int64
}

// Encode writes version 1, or 3 when t.Version is 3.
func (t DelegationToken) Encode() []byte {
	version := t.Version
	if version != 3 {
		version = 1
	}
	dst := appendInt([]byte(`{"version":`), int64(version))
	dst = appendString(append(dst, `,"owner":`...), EncodeName(t.Owner))
	if version >= 3 {
		dst = appendString(append(dst, `,"tokenRequester":`...), EncodeName(t.Requester))
	}
	renewers := make([]string, len(t.Renewers))
	for i, r := range t.Renewers {
		renewers[i] = EncodeName(r)
	}
	dst = appendStrings(append(dst, `,"renewers":`...), renewers)
	dst = appendInt(append(dst, `,"issueTimestamp":`...), t.IssueTimestamp)
	dst = appendInt(append(dst, `,"maxTimestamp":`...), t.MaxTimestamp)
	dst = appendInt(append(dst, `,"expiryTimestamp":`...), t.ExpiryTimestamp)
	dst = appendString(append(dst, `,"tokenId":`...), t.ID)
	return append(dst, '}')
}

// DecodeDelegationToken reads versions 1 to 3.
func DecodeDelegationToken(data []byte) (DelegationToken, error) {
	const kind = "delegation token"
	p := parse(kind, data)
	var t DelegationToken
	var version, renewers, issue, maximum, expiry bool
	for key := range p.fields() {
		switch string(key) {
		case "version":
			t.Version, version = p.int32(), true
		case "owner":
			t.Owner = p.encodedName()
		case "tokenRequester":
			t.Requester = p.encodedName()
		case "renewers":
			t.Renewers, renewers = p.strings(), true
			for i, r := range t.Renewers {
				plain, err := DecodeName(r)
				if err != nil {
					p.fail("malformed escape")
				}
				t.Renewers[i] = plain
			}
		case "issueTimestamp":
			t.IssueTimestamp, issue = p.int64(), true
		case "maxTimestamp":
			t.MaxTimestamp, maximum = p.int64(), true
		case "expiryTimestamp":
			t.ExpiryTimestamp, expiry = p.int64(), true
		case "tokenId":
			t.ID = p.string()
		default:
			p.skip()
		}
	}
	p.require(version, "version")
	if p.err == nil && (t.Version < 1 || t.Version > 3) {
		return DelegationToken{}, badVersion(kind, t.Version)
	}
	p.require(t.Owner != "", "owner")
	p.require(t.Requester != "" || t.Version < 3, "tokenRequester")
	p.require(renewers, "renewers")
	p.require(issue, "issueTimestamp")
	p.require(maximum, "maxTimestamp")
	p.require(expiry, "expiryTimestamp")
	p.require(t.ID != "", "tokenId")
	if p.err != nil {
		return DelegationToken{}, p.err
	}
	if t.Version < 3 {
		t.Requester = t.Owner
	}
	return t, nil
}

func (p *parser) encodedName() string {
	plain, err := DecodeName(p.string())
	if err != nil {
		p.fail("malformed escape")
	}
	return plain
}
