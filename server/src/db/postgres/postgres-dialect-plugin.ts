import {
  type ColumnDefinitionNode,
  DataTypeNode,
  type KyselyPlugin,
  OperationNodeTransformer,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  RawNode,
} from 'kysely';

/** Translates queries from SQLite's syntax to PostgreSQL's. */
class DialectTransformer extends OperationNodeTransformer {
  /** Text is compared and sorted by its bytes, as in SQLite, independent of the database's locale. */
  protected override transformColumnDefinition(node: ColumnDefinitionNode): ColumnDefinitionNode {
    const made = super.transformColumnDefinition(node);
    const { dataType } = made;
    const isText = DataTypeNode.is(dataType) && dataType.dataType === 'text';
    return isText ? { ...made, dataType: RawNode.createWithSql('text collate "C"') } : made;
  }

  protected override transformRaw(node: RawNode): RawNode {
    const made = super.transformRaw(node);
    const [first, ...others] = made.sqlFragments;
    return first?.startsWith('instr(')
      ? { ...made, sqlFragments: [first.replace('instr(', 'strpos('), ...others] }
      : made;
  }
}

/** Dialect plugin for PostgreSQL, and for databases that speak its protocol. */
export class PostgresDialectPlugin implements KyselyPlugin {
  readonly #transformer = new DialectTransformer();

  transformQuery({ node }: PluginTransformQueryArgs) {
    return this.#transformer.transformNode(node);
  }

  async transformResult({ result }: PluginTransformResultArgs) {
    return result;
  }
}
