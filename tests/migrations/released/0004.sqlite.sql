BEGIN TRANSACTION;
CREATE TABLE agents (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	idx INTEGER NOT NULL, 
	definition TEXT NOT NULL, 
	settings TEXT, 
	is_default BOOLEAN NOT NULL, 
	CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, thread_id, name), 
	CONSTRAINT agents_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id), 
	CONSTRAINT agents_idx_check CHECK (idx >= 0)
);
INSERT INTO "agents" VALUES('default','odd','sky',0,'{"models":["m-1"]}','{"temperature":0.5}',1);
INSERT INTO "agents" VALUES('acme','odd','sky',0,'{"models":["m-1"]}','{"temperature":0.5}',1);
CREATE TABLE branches (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	last_seq INTEGER NOT NULL, 
	stamp BIGINT NOT NULL, 
	last_role TEXT, 
	open_calls TEXT, 
	partial_seq INTEGER, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT branches_pkey PRIMARY KEY (tenant_id, thread_id, branch), 
	CONSTRAINT branches_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id), 
	CONSTRAINT branches_last_seq_check CHECK (last_seq >= 0)
);
INSERT INTO "branches" VALUES('default','weather',0,'[[0,1,null]]',12,1669904231441493312,'assistant',NULL,NULL,1795329319085756);
INSERT INTO "branches" VALUES('default','weather',1,'[[0,1,6],[1,7,null]]',7,5880125393141328949,'assistant','{"partial":{"lease":[1795329319136094,10.0]}}',7,1795329319132660);
INSERT INTO "branches" VALUES('default','odd',0,'[[0,1,null]]',2,6312094723698699009,'user',NULL,NULL,1795329319138266);
INSERT INTO "branches" VALUES('default','empty',0,'[[0,1,null]]',0,5543117919788913600,NULL,NULL,NULL,1795329319157688);
INSERT INTO "branches" VALUES('default','open',0,'[[0,1,null]]',2,2703315808883337119,'assistant','{"calls":[[0,2,0,"call_0","f"]]}',NULL,1795329319160398);
INSERT INTO "branches" VALUES('acme','weather',0,'[[0,1,null]]',12,6652844491497061564,'assistant',NULL,NULL,1795329319291354);
INSERT INTO "branches" VALUES('acme','weather',1,'[[0,1,6],[1,7,null]]',7,5002132608430387695,'assistant','{"partial":{"lease":[1795329319316465,10.0]}}',7,1795329319314869);
INSERT INTO "branches" VALUES('acme','odd',0,'[[0,1,null]]',2,8037607235842836232,'user',NULL,NULL,1795329319317549);
INSERT INTO "branches" VALUES('acme','empty',0,'[[0,1,null]]',0,4219694565931605972,NULL,NULL,NULL,1795329319325953);
INSERT INTO "branches" VALUES('acme','open',0,'[[0,1,null]]',2,3383128571887775844,'assistant','{"calls":[[0,2,0,"call_0","f"]]}',NULL,1795329319328439);
CREATE TABLE chatledger_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT chatledger_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "chatledger_version" VALUES('0004');
CREATE TABLE erasures (
	tenant_id TEXT NOT NULL, 
	erasure_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	rows TEXT NOT NULL, 
	scores INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT erasures_pkey PRIMARY KEY (tenant_id, erasure_id), 
	CONSTRAINT erasures_kind_check CHECK (kind IN ('thread', 'user', 'tenant'))
);
INSERT INTO "erasures" VALUES('default','01a201f7-6177-7d98-8468-8936f5d8d56b','thread','22e9e744-18ab-8939-8fb9-c99caa8cd31b','{"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}',1,1795329319287595);
INSERT INTO "erasures" VALUES('acme','01a201f7-61ad-7774-b31e-3f631e9b9a1c','thread','22e9e744-18ab-8939-8fb9-c99caa8cd31b','{"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}',1,1795329319341121);
CREATE TABLE feedback (
	tenant_id TEXT NOT NULL, 
	feedback_id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	score FLOAT NOT NULL, 
	kwargs TEXT NOT NULL, 
	author TEXT, 
	source TEXT, 
	thread_id TEXT, 
	branch INTEGER, 
	seq INTEGER, 
	idempotency_key TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT feedback_pkey PRIMARY KEY (tenant_id, feedback_id), 
	CONSTRAINT feedback_tenant_id_run_id_idempotency_key_key UNIQUE (tenant_id, run_id, idempotency_key), 
	CONSTRAINT feedback_tenant_id_run_id_fkey FOREIGN KEY(tenant_id, run_id) REFERENCES runs (tenant_id, run_id), 
	CONSTRAINT feedback_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq)
);
INSERT INTO "feedback" VALUES('default','32469f96-d648-80fd-a2c5-2d9ae21cd226','run 7','stars',4.0,'{"why":"fast"}','ada','ui','weather',0,5,'click-1',1795329319112923);
INSERT INTO "feedback" VALUES('default','01a201f7-60d4-7d57-9d0e-0749e064782d','run 7','thumbs',-1.5,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1795329319124628);
INSERT INTO "feedback" VALUES('acme','32469f96-d648-80fd-a2c5-2d9ae21cd226','run 7','stars',4.0,'{"why":"fast"}','ada','ui','weather',0,5,'click-1',1795329319304817);
INSERT INTO "feedback" VALUES('acme','01a201f7-618d-7fbc-96d1-e1f34ff218e9','run 7','thumbs',-1.5,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1795329319309722);
CREATE TABLE kept_scores (
	tenant_id TEXT NOT NULL, 
	erasure_id TEXT NOT NULL, 
	idx INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	score FLOAT NOT NULL, 
	agent TEXT, 
	model TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT kept_scores_pkey PRIMARY KEY (tenant_id, erasure_id, idx), 
	CONSTRAINT kept_scores_tenant_id_erasure_id_fkey FOREIGN KEY(tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id), 
	CONSTRAINT kept_scores_idx_check CHECK (idx >= 0)
);
INSERT INTO "kept_scores" VALUES('default','01a201f7-6177-7d98-8468-8936f5d8d56b',0,'stars',2.0,'forecaster','m-1',1795329319271359);
INSERT INTO "kept_scores" VALUES('acme','01a201f7-61ad-7774-b31e-3f631e9b9a1c',0,'stars',2.0,'forecaster','m-1',1795329319335924);
CREATE TABLE message_parts (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	channel TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	text TEXT, 
	body TEXT, 
	CONSTRAINT message_parts_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT message_parts_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT message_parts_idx_check CHECK (idx >= 0), 
	CONSTRAINT message_parts_channel_check CHECK (channel IN ('content', 'reasoning'))
);
INSERT INTO "message_parts" VALUES('default','weather',0,6,0,'content','text','see',NULL);
INSERT INTO "message_parts" VALUES('default','weather',0,6,1,'content','image',NULL,'{"url":"https://example.org/a.png"}');
INSERT INTO "message_parts" VALUES('default','weather',0,7,0,'reasoning','text','hm',NULL);
INSERT INTO "message_parts" VALUES('default','weather',0,11,0,'content','opaque',NULL,'{"type":"chart","value":{"n":1000000000000000000000000000000}}');
INSERT INTO "message_parts" VALUES('default','weather',0,11,1,'content','text',' marked',NULL);
INSERT INTO "message_parts" VALUES('default','weather',0,11,2,'reasoning','think','so','{"signature":"s"}');
INSERT INTO "message_parts" VALUES('acme','weather',0,6,0,'content','text','see',NULL);
INSERT INTO "message_parts" VALUES('acme','weather',0,6,1,'content','image',NULL,'{"url":"https://example.org/a.png"}');
INSERT INTO "message_parts" VALUES('acme','weather',0,7,0,'reasoning','text','hm',NULL);
INSERT INTO "message_parts" VALUES('acme','weather',0,11,0,'content','opaque',NULL,'{"type":"chart","value":{"n":1000000000000000000000000000000}}');
INSERT INTO "message_parts" VALUES('acme','weather',0,11,1,'content','text',' marked',NULL);
INSERT INTO "message_parts" VALUES('acme','weather',0,11,2,'reasoning','think','so','{"signature":"s"}');
CREATE TABLE messages (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	message_id TEXT, 
	role TEXT NOT NULL, 
	name TEXT, 
	content_form TEXT, 
	text TEXT, 
	reasoning_form TEXT, 
	call_count INTEGER, 
	tool_call_id TEXT, 
	is_error BOOLEAN, 
	run_id TEXT, 
	state TEXT NOT NULL, 
	format TEXT, 
	residual TEXT, 
	response_metadata TEXT, 
	custom_data TEXT, 
	violations TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq), 
	CONSTRAINT messages_tenant_id_thread_id_branch_fkey FOREIGN KEY(tenant_id, thread_id, branch) REFERENCES branches (tenant_id, thread_id, branch), 
	CONSTRAINT messages_tenant_id_thread_id_run_id_fkey FOREIGN KEY(tenant_id, thread_id, run_id) REFERENCES runs (tenant_id, thread_id, run_id), 
	CONSTRAINT messages_seq_check CHECK (seq >= 1), 
	CONSTRAINT messages_content_form_check CHECK (content_form IN ('str', 'text', 'parts')), 
	CONSTRAINT messages_reasoning_form_check CHECK (reasoning_form IN ('str', 'parts')), 
	CONSTRAINT messages_state_check CHECK (state IN ('complete', 'partial', 'interrupted', 'synthetic'))
);
INSERT INTO "messages" VALUES('default','weather',0,1,'w0','user',NULL,'str','What is the weather in Tokyo and in Lima?',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319103122);
INSERT INTO "messages" VALUES('default','weather',0,2,'w1','assistant',NULL,NULL,NULL,NULL,2,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319103122);
INSERT INTO "messages" VALUES('default','weather',0,3,'w2','tool',NULL,'str','sunny',NULL,NULL,'call_1',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319103122);
INSERT INTO "messages" VALUES('default','weather',0,4,'w3','tool',NULL,'str','sunny',NULL,NULL,'call_0',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319103122);
INSERT INTO "messages" VALUES('default','weather',0,5,'w4','assistant',NULL,'str','It is sunny in both.',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319103122);
INSERT INTO "messages" VALUES('default','weather',0,6,'r0','user','ada','parts',NULL,NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319105790);
INSERT INTO "messages" VALUES('default','weather',0,7,'r1','assistant',NULL,'parts',NULL,'str',3,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1709251199123456);
INSERT INTO "messages" VALUES('default','weather',0,8,'r2','tool',NULL,'str','no',NULL,NULL,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',1,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319105790);
INSERT INTO "messages" VALUES('default','weather',0,9,'r3','tool','f','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319105790);
INSERT INTO "messages" VALUES('default','weather',0,10,'r4','tool','g','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319105790);
INSERT INTO "messages" VALUES('default','weather',0,11,'r5','assistant',NULL,'parts',NULL,'parts',NULL,NULL,NULL,NULL,'complete',NULL,NULL,'{"finish":"stop"}','{"k":"v"}',NULL,1795329319105790);
INSERT INTO "messages" VALUES('default','weather',0,12,'r6','assistant',NULL,'text','lone',NULL,NULL,NULL,NULL,NULL,'interrupted',NULL,NULL,NULL,NULL,NULL,1795329319105790);
INSERT INTO "messages" VALUES('default','weather',1,7,'w-other','assistant',NULL,'str','Or: 21 °C.',NULL,NULL,NULL,NULL,NULL,'partial',NULL,NULL,NULL,NULL,NULL,1795329319136094);
INSERT INTO "messages" VALUES('default','odd',0,1,'o1','tool',NULL,'str','sunny',NULL,NULL,'nowhere',NULL,NULL,'complete',NULL,NULL,NULL,NULL,'[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]',1795329319142701);
INSERT INTO "messages" VALUES('default','odd',0,2,'o2','user',NULL,'str','',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319142701);
INSERT INTO "messages" VALUES('default','open',0,1,'820220be-753b-8e97-b1b5-2ebc4c130221','user',NULL,'str','f?',NULL,NULL,NULL,NULL,NULL,'complete','openai-chat',NULL,NULL,NULL,NULL,1795329319261884);
INSERT INTO "messages" VALUES('default','open',0,2,'7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd','assistant',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'complete','openai-chat','{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}',NULL,NULL,'[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]',1795329319261884);
INSERT INTO "messages" VALUES('acme','weather',0,1,'w0','user',NULL,'str','What is the weather in Tokyo and in Lima?',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319297706);
INSERT INTO "messages" VALUES('acme','weather',0,2,'w1','assistant',NULL,NULL,NULL,NULL,2,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319297706);
INSERT INTO "messages" VALUES('acme','weather',0,3,'w2','tool',NULL,'str','sunny',NULL,NULL,'call_1',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319297706);
INSERT INTO "messages" VALUES('acme','weather',0,4,'w3','tool',NULL,'str','sunny',NULL,NULL,'call_0',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319297706);
INSERT INTO "messages" VALUES('acme','weather',0,5,'w4','assistant',NULL,'str','It is sunny in both.',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795329319297706);
INSERT INTO "messages" VALUES('acme','weather',0,6,'r0','user','ada','parts',NULL,NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319300030);
INSERT INTO "messages" VALUES('acme','weather',0,7,'r1','assistant',NULL,'parts',NULL,'str',3,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1709251199123456);
INSERT INTO "messages" VALUES('acme','weather',0,8,'r2','tool',NULL,'str','no',NULL,NULL,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',1,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319300030);
INSERT INTO "messages" VALUES('acme','weather',0,9,'r3','tool','f','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319300030);
INSERT INTO "messages" VALUES('acme','weather',0,10,'r4','tool','g','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319300030);
INSERT INTO "messages" VALUES('acme','weather',0,11,'r5','assistant',NULL,'parts',NULL,'parts',NULL,NULL,NULL,NULL,'complete',NULL,NULL,'{"finish":"stop"}','{"k":"v"}',NULL,1795329319300030);
INSERT INTO "messages" VALUES('acme','weather',0,12,'r6','assistant',NULL,'text','lone',NULL,NULL,NULL,NULL,NULL,'interrupted',NULL,NULL,NULL,NULL,NULL,1795329319300030);
INSERT INTO "messages" VALUES('acme','weather',1,7,'w-other','assistant',NULL,'str','Or: 21 °C.',NULL,NULL,NULL,NULL,NULL,'partial',NULL,NULL,NULL,NULL,NULL,1795329319316465);
INSERT INTO "messages" VALUES('acme','odd',0,1,'o1','tool',NULL,'str','sunny',NULL,NULL,'nowhere',NULL,NULL,'complete',NULL,NULL,NULL,NULL,'[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]',1795329319320353);
INSERT INTO "messages" VALUES('acme','odd',0,2,'o2','user',NULL,'str','',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795329319320353);
INSERT INTO "messages" VALUES('acme','open',0,1,'820220be-753b-8e97-b1b5-2ebc4c130221','user',NULL,'str','f?',NULL,NULL,NULL,NULL,NULL,'complete','openai-chat',NULL,NULL,NULL,NULL,1795329319331058);
INSERT INTO "messages" VALUES('acme','open',0,2,'7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd','assistant',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'complete','openai-chat','{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}',NULL,NULL,'[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]',1795329319331058);
CREATE TABLE outputs (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	call_idx INTEGER, 
	nonce TEXT NOT NULL, 
	mime_type TEXT NOT NULL, 
	text TEXT NOT NULL, 
	body TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT outputs_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT outputs_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT outputs_idx_check CHECK (idx >= 0)
);
INSERT INTO "outputs" VALUES('default','odd',0,2,0,0,'n1','text/plain','\u0000','{"lang":"sh"}',1795329319145742);
INSERT INTO "outputs" VALUES('acme','odd',0,2,0,0,'n1','text/plain','\u0000','{"lang":"sh"}',1795329319322139);
CREATE TABLE runs (
	tenant_id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	agent TEXT, 
	model TEXT, 
	status TEXT NOT NULL, 
	input TEXT, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	total_tokens BIGINT, 
	usage_details TEXT, 
	cost TEXT, 
	error TEXT, 
	metadata TEXT, 
	started_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, run_id), 
	CONSTRAINT runs_tenant_id_thread_id_run_id_key UNIQUE (tenant_id, thread_id, run_id), 
	CONSTRAINT runs_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id), 
	CONSTRAINT runs_status_check CHECK (status IN ('running', 'completed', 'failed', 'cancelled'))
);
INSERT INTO "runs" VALUES('default','run 7','weather','forecaster','m-1','failed','{"q":1}',12,3,15,'{"cached":2}','1.0E-20','out of \ud800 quota','{}',1795329319098593,1795329319110481);
INSERT INTO "runs" VALUES('acme','run 7','weather','forecaster','m-1','failed','{"q":1}',12,3,15,'{"cached":2}','1.0E-20','out of \ud800 quota','{}',1795329319295350,1795329319303097);
CREATE TABLE threads (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	user_id TEXT, 
	title TEXT, 
	metadata TEXT, 
	rules TEXT, 
	active_branch INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	active_at BIGINT NOT NULL, 
	CONSTRAINT threads_pkey PRIMARY KEY (tenant_id, thread_id), 
	CONSTRAINT threads_rules_check CHECK (rules IN ('lenient', 'strict', 'ordered'))
);
INSERT INTO "threads" VALUES('default','weather','user:42/x','Wetter in Tōkyō','{"b":100.0,"a":[null,"\u0000"]}',NULL,1,1795329319085756,1795329319085756);
INSERT INTO "threads" VALUES('default','odd',NULL,NULL,NULL,'lenient',0,1795329319138266,1795329319138266);
INSERT INTO "threads" VALUES('default','empty',NULL,NULL,NULL,NULL,0,1795329319157688,1795329319157688);
INSERT INTO "threads" VALUES('default','open',NULL,NULL,NULL,NULL,0,1795329319160398,1795329319160398);
INSERT INTO "threads" VALUES('acme','weather','user:42/x','Wetter in Tōkyō','{"b":100.0,"a":[null,"\u0000"]}',NULL,1,1795329319291354,1795329319291354);
INSERT INTO "threads" VALUES('acme','odd',NULL,NULL,NULL,'lenient',0,1795329319317549,1795329319317549);
INSERT INTO "threads" VALUES('acme','empty',NULL,NULL,NULL,NULL,0,1795329319325953,1795329319325953);
INSERT INTO "threads" VALUES('acme','open',NULL,NULL,NULL,NULL,0,1795329319328439,1795329319328439);
CREATE TABLE tool_calls (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	call_id TEXT, 
	name TEXT NOT NULL, 
	arguments TEXT, 
	arguments_form TEXT, 
	extras TEXT, 
	CONSTRAINT tool_calls_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT tool_calls_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT tool_calls_idx_check CHECK (idx >= 0), 
	CONSTRAINT tool_calls_arguments_form_check CHECK (arguments_form IN ('str', 'object'))
);
INSERT INTO "tool_calls" VALUES('default','weather',0,2,0,'call_0','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','weather',0,2,1,'call_1','weather','{"city": "Lima"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','weather',0,7,0,NULL,'f','{"z":-0.0}','object','{"x":1}');
INSERT INTO "tool_calls" VALUES('default','weather',0,7,1,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','weather',0,7,2,NULL,'g',NULL,NULL,NULL);
INSERT INTO "tool_calls" VALUES('default','open',0,2,0,'call_0','f','{','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,2,0,'call_0','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,2,1,'call_1','weather','{"city": "Lima"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,7,0,NULL,'f','{"z":-0.0}','object','{"x":1}');
INSERT INTO "tool_calls" VALUES('acme','weather',0,7,1,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,7,2,NULL,'g',NULL,NULL,NULL);
INSERT INTO "tool_calls" VALUES('acme','open',0,2,0,'call_0','f','{','str',NULL);
CREATE TABLE tool_results (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	call_branch INTEGER NOT NULL, 
	call_seq INTEGER NOT NULL, 
	call_idx INTEGER NOT NULL, 
	CONSTRAINT tool_results_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq), 
	CONSTRAINT tool_results_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT tool_results_call_fkey FOREIGN KEY(tenant_id, thread_id, call_branch, call_seq, call_idx) REFERENCES tool_calls (tenant_id, thread_id, branch, seq, idx)
);
INSERT INTO "tool_results" VALUES('default','weather',0,3,0,2,1);
INSERT INTO "tool_results" VALUES('default','weather',0,4,0,2,0);
INSERT INTO "tool_results" VALUES('default','weather',0,8,0,7,1);
INSERT INTO "tool_results" VALUES('default','weather',0,9,0,7,0);
INSERT INTO "tool_results" VALUES('default','weather',0,10,0,7,2);
INSERT INTO "tool_results" VALUES('acme','weather',0,3,0,2,1);
INSERT INTO "tool_results" VALUES('acme','weather',0,4,0,2,0);
INSERT INTO "tool_results" VALUES('acme','weather',0,8,0,7,1);
INSERT INTO "tool_results" VALUES('acme','weather',0,9,0,7,0);
INSERT INTO "tool_results" VALUES('acme','weather',0,10,0,7,2);
CREATE INDEX threads_tenant_id_user_id_active_at_thread_id_idx ON threads (tenant_id, user_id, active_at, thread_id);
CREATE INDEX threads_tenant_id_active_at_thread_id_idx ON threads (tenant_id, active_at, thread_id);
CREATE UNIQUE INDEX messages_message_id_key ON messages (tenant_id, thread_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX messages_run_id_idx ON messages (tenant_id, thread_id, run_id) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX tool_results_call_key ON tool_results (tenant_id, thread_id, call_branch, call_seq, call_idx, branch) WHERE call_seq IS NOT NULL;
CREATE INDEX feedback_tenant_id_created_at_feedback_id_idx ON feedback (tenant_id, created_at, feedback_id);
CREATE INDEX feedback_message_idx ON feedback (tenant_id, thread_id, branch, seq) WHERE thread_id IS NOT NULL;
CREATE VIEW transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  coalesce(m.text, (
    SELECT group_concat(x, '') FROM (
      SELECT p.text AS x FROM message_parts p
      WHERE p.tenant_id = m.tenant_id AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS text,
  (
    SELECT group_concat(x, ', ') FROM (
      SELECT c.name AS x FROM tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, 
    strftime('%Y-%m-%dT%H:%M:%S', (m.created_at - (m.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (m.created_at % 1000000 + 1000000) % 1000000) AS created_at
FROM threads t
JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN json_each(b.lineage) AS l
JOIN messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = json_extract(l.value, '$[0]')
  AND m.seq >= json_extract(l.value, '$[1]') AND m.seq <= coalesce(json_extract(l.value, '$[2]'), m.seq);
CREATE VIEW scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  
    strftime('%Y-%m-%dT%H:%M:%S', (f.created_at - (f.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (f.created_at % 1000000 + 1000000) % 1000000) AS created_at
FROM feedback f
JOIN runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id;
CREATE INDEX erasures_tenant_id_kind_subject_idx ON erasures (tenant_id, kind, subject);
CREATE INDEX erasures_tenant_id_created_at_erasure_id_idx ON erasures (tenant_id, created_at, erasure_id);
CREATE INDEX branches_partial_idx ON branches (tenant_id, thread_id, branch) WHERE partial_seq IS NOT NULL;
COMMIT;
